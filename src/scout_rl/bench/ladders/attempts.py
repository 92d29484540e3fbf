"""A policy's shortest successes from many starts at once, and the same episodes again, with the states that are wanted.

An attempt keeps actions and outcomes. Since restores are exact, playing the kept actions again gives the same episode:
its states are read then, and only at the steps that a ladder needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, States

Array = NDArray[Any]
Policy = Callable[[Any, Any], Array]
"""(observations [B, ...], key) to actions [B, ...]; all of the policy's chance comes from the key."""

ATTEMPTS = 5
"""Attempts from each start, the paper's k."""
KEY = 11
"""Of all attempts, the same for every run, so that a policy's ladder depends on the policy alone."""


class Found(NamedTuple):
    """What the attempts of one policy came to."""

    solutions: list[list[Array]]
    """By start: the actions [T, ...] of its successes, the shortest first, and of equally short ones the earlier."""

    @property
    def succeeded(self) -> NDArray[np.int64]:
        """[n]: how many attempts succeeded."""
        return np.array([len(found) for found in self.solutions])


def attempt_all(
    simulator: BatchSimulator, starts: Mapping[str, Array], policy: Policy, attempts: int = ATTEMPTS
) -> Found:
    """Play the policy from starts [n, ...], all together; attempt k draws from (KEY, k, step)."""
    n = len(next(iter(starts.values())))
    solutions: list[list[Array]] = [[] for _ in range(n)]
    for number in range(attempts):
        actions, length = _attempt(simulator, starts, policy, jax.random.fold_in(jax.random.key(KEY), number))
        for i in map(int, np.flatnonzero(length)):
            solutions[i].append(actions[: length[i], i].copy())
    return Found([sorted(found, key=len) for found in solutions])


_key_of_step = jax.jit(jax.random.fold_in)


def _attempt(
    simulator: BatchSimulator, starts: Mapping[str, Array], policy: Policy, key: Any
) -> tuple[Array, NDArray[np.int64]]:
    """The actions [T, n, ...] of one attempt from each start, and the steps to its first success, 0 where none came."""
    state = simulator.reset_to(starts)
    seen = simulator.observe(state)
    actions: list[Array] = []
    length = np.zeros(len(next(iter(starts.values()))), dtype=np.int64)
    running = np.ones(len(length), dtype=bool)
    while running.any() and len(actions) < simulator.max_steps:
        actions.append(np.asarray(policy(seen, _key_of_step(key, np.int32(len(actions))))))
        state, transition = simulator.step(state, actions[-1])
        seen = transition.observation
        success = np.asarray(transition.success) & running
        length[success] = len(actions)
        running &= ~(success | np.asarray(transition.terminated) | np.asarray(transition.truncated))
    return np.stack(actions), length


def replay(
    simulator: BatchSimulator, starts: Mapping[str, Array], actions: Sequence[Array], rungs: NDArray[np.int64]
) -> States:
    """The states [n, levels, ...] after ``rungs`` [n, levels] steps of each start's kept actions.

    Success has to come with the last action of each and not before; else restores are not exact, a ``RuntimeError``.
    """
    length = np.array([len(a) for a in actions])
    kept = {name: np.repeat(np.asarray(array)[:, None], rungs.shape[1], axis=1) for name, array in starts.items()}
    state = simulator.reset_to(starts)
    for t in range(1, int(length.max()) + 1):
        chosen = np.stack([a[min(t, len(a)) - 1] for a in actions])
        state, transition = simulator.step(state, chosen)
        success = np.asarray(transition.success)
        parted = (t <= length) & (success != (t == length))
        if parted.any():
            i = int(np.argmax(parted))
            raise RuntimeError(
                f"the success of start {i} at step {length[i]} is another episode when it is played again (step {t}): "
                "restores are not exact"
            )
        rows, levels = np.nonzero(rungs == t)
        if len(rows):
            now = simulator.get_states(state)
            for name, array in kept.items():
                array[rows, levels] = now[name][rows]
    return kept
