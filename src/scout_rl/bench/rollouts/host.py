"""Cells to episodes on a host simulator: goal-conditioned episodes of the full time limit, stepped as one batch."""

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


def rows(seen: Mapping[str, Array]) -> NDArray[np.float32]:
    """What a goal-conditioned policy sees of a goal observation: float32[B, n + k]."""
    return np.concatenate([seen["observation"], seen["desired_goal"]], axis=-1, dtype=np.float32, casting="same_kind")


def collect(
    simulator: GoalSimulator, act: Act, starts: Mapping[str, Array], group: Array
) -> tuple[GoalEpisodes, NDArray[np.bool_]]:
    """One episode from each start, and which of them were a success at any step from 1 to the time limit."""
    handle = simulator.reset_to(starts)
    seen = simulator.observe(handle)
    n, horizon = len(seen["desired_goal"]), simulator.max_steps
    observation = np.empty((n, horizon + 1, seen["observation"].shape[1]), np.float32)
    achieved = np.empty((n, horizon + 1, seen["achieved_goal"].shape[1]), np.float32)
    action = np.empty((n, horizon, simulator.n_actions), np.float32)
    observation[:, 0], achieved[:, 0] = seen["observation"], seen["achieved_goal"]
    success = np.zeros(n, dtype=bool)
    for t in range(horizon):
        chosen = act(t, rows(seen))
        handle, transition = simulator.step(handle, chosen)
        seen = transition.observation
        action[:, t] = chosen
        observation[:, t + 1], achieved[:, t + 1] = seen["observation"], seen["achieved_goal"]
        success |= transition.success
    episodes = GoalEpisodes(
        observation=observation,
        achieved=achieved,
        action=action,
        goal=seen["desired_goal"].astype(np.float32),
        radius=np.asarray(simulator.goal_radius(handle), np.float32),
        group=np.asarray(group, np.int32),
    )
    return episodes, success


def succeeds(simulator: GoalSimulator, act: Act, starts: Mapping[str, Array]) -> NDArray[np.bool_]:
    """bool[B]: which episodes are a success at any step; it ends as soon as all are."""
    handle = simulator.reset_to(starts)
    seen = simulator.observe(handle)
    success = np.zeros(len(seen["desired_goal"]), dtype=bool)
    for t in range(simulator.max_steps):
        handle, transition = simulator.step(handle, act(t, rows(seen)))
        seen = transition.observation
        success |= transition.success
        if success.all():
            break
    return success
