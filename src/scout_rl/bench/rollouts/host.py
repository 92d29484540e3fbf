"""Cells to goal-conditioned episodes of the full time limit, on a host simulator, as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import GoalSimulator
from scout_rl.bench.learners.episodes import GoalEpisodes

Array = NDArray[Any]
Act = Callable[[int, NDArray[np.float32]], Array]
"""(step, rows float32[B, n + k] of observation and desired goal) to actions float32[B, m]."""


def rows(view: Mapping[str, Array]) -> NDArray[np.float32]:
    """The input of a goal-conditioned policy: float32[B, n + k]."""
    return np.concatenate([view["observation"], view["desired_goal"]], axis=-1, dtype=np.float32, casting="same_kind")


def collect(
    simulator: GoalSimulator, act: Act, starts: Mapping[str, Array], group: Array
) -> tuple[GoalEpisodes, NDArray[np.bool_]]:
    """One episode per start, and which of them succeed at any step."""
    handle = simulator.reset_to(starts)
    view = simulator.observe(handle)
    n, horizon = len(view["desired_goal"]), simulator.max_steps
    observations = np.empty((n, horizon + 1, view["observation"].shape[1]), np.float32)
    achieved = np.empty((n, horizon + 1, view["achieved_goal"].shape[1]), np.float32)
    actions = np.empty((n, horizon, simulator.n_actions), np.float32)
    observations[:, 0], achieved[:, 0] = view["observation"], view["achieved_goal"]
    success = np.zeros(n, dtype=bool)
    for t in range(horizon):
        action = act(t, rows(view))
        handle, result = simulator.step(handle, action)
        view = result.observation
        actions[:, t] = action
        observations[:, t + 1], achieved[:, t + 1] = view["observation"], view["achieved_goal"]
        success |= result.success
    episodes = GoalEpisodes(
        observation=observations,
        achieved=achieved,
        action=actions,
        goal=view["desired_goal"].astype(np.float32),
        radius=np.asarray(simulator.goal_radius(handle), np.float32),
        group=np.asarray(group, np.int32),
    )
    return episodes, success


def succeeds(simulator: GoalSimulator, act: Act, starts: Mapping[str, Array]) -> NDArray[np.bool_]:
    """bool[B]: which episodes succeed at any step; one that has is played no further."""
    handle = simulator.reset_to(starts)
    view = simulator.observe(handle)
    success = np.zeros(len(view["desired_goal"]), dtype=bool)
    for t in range(simulator.max_steps):
        handle, result = simulator.step(handle, act(t, rows(view)))
        view = result.observation
        success |= result.success
        if success.all():
            break
        simulator.rest(handle, success)
    return success
