"""A policy in stock environments, all stepped together, with the action noise of our rollouts.

The noise of an action depends on the key, the step and the batch. They are the same as in `device.rollout`, so equal
observations give equal actions, and every outcome must equal ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, StockEnv
from scout_rl.bench.rollouts.evaluate import EVALUATION_KEY

Choose = Callable[[Any, Any], NDArray[Any]]
"""(observations [B, ...], key) to actions [B, ...]."""


class Frame(NamedTuple):
    """After a step: which episodes still run, which have succeeded, the actions and the observations."""

    alive: NDArray[np.bool_]
    success: NDArray[np.bool_]
    actions: NDArray[Any]
    observation: Any
    """[envs, ...], an array or a dict of arrays."""


def lockstep(
    choose: Choose,
    envs: Sequence[StockEnv],
    first: Sequence[Any],
    watch: Callable[[Frame], None] = lambda frame: None,
) -> NDArray[np.bool_]:
    """bool[envs]: which episodes succeed, each played from its ``first`` observation to its end."""
    observation, key = stacked(first), jax.random.key(EVALUATION_KEY)
    alive, success = np.ones(len(envs), dtype=bool), np.zeros(len(envs), dtype=bool)
    while alive.any():
        key, action_key = jax.random.split(key)
        actions = choose(observation, action_key)
        next_observations = [jax.tree.map(lambda rows, i=i: rows[i], observation) for i in range(len(envs))]
        for i in map(int, np.flatnonzero(alive)):
            result = envs[i].step(actions[i])
            next_observations[i] = result.observation
            success[i] |= result.success
            alive[i] = not result.over
        observation = stacked(next_observations)
        watch(Frame(alive.copy(), success.copy(), actions, observation))
    return success


class Comparison(NamedTuple):
    """The stock environments' outcomes, and the steps at which ours differs."""

    success: NDArray[np.bool_]
    differs_at: NDArray[np.int64]
    """The first step after which our simulator shows another observation or outcome for the same actions.
    0: at the start; -1: never."""


def compare(
    choose: Choose, envs: Sequence[StockEnv], simulator: BatchSimulator, starts: Mapping[str, NDArray[Any]]
) -> Comparison:
    """Play the contexts from their stock starts, and the same actions in our simulator from ``starts``."""
    first = [env.reset() for env in envs]
    state = simulator.reset_to(starts)
    differs_at = np.where(_rows_differ(stacked(first), simulator.observe(state)), 0, -1)
    was_alive, succeeded, t = np.ones(len(envs), dtype=bool), np.zeros(len(envs), dtype=bool), 0

    def watch(frame: Frame) -> None:
        nonlocal state, was_alive, succeeded, t
        state, ours = simulator.step(state, frame.actions)
        t += 1
        succeeded = succeeded | (np.asarray(ours.success) & was_alive)
        over = np.asarray(ours.terminated) | np.asarray(ours.truncated)
        differs = _rows_differ(frame.observation, ours.observation)
        differs |= (succeeded != frame.success) | (over == frame.alive)
        differs_at[was_alive & differs & (differs_at < 0)] = t
        was_alive = frame.alive

    success = lockstep(choose, envs, first, watch)
    return Comparison(success, differs_at)


def stacked(observations: Sequence[Any]) -> Any:
    """Observations of n environments (arrays or dicts of arrays) as one with a leading axis of n."""
    return jax.tree.map(lambda *rows: np.stack(rows), *observations)


def _rows_differ(a: Any, b: Any) -> NDArray[np.bool_]:
    unequal = jax.tree.leaves(jax.tree.map(lambda x, y: np.asarray(x) != np.asarray(y), a, b))
    return np.asarray(np.any([rows.reshape(len(rows), -1).any(axis=1) for rows in unequal], axis=0))
