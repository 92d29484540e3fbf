"""A ladder from solutions: which of a solution's steps the levels start at, and their states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Rungs, Solution, States
from scout_rl.codecs.codec import State
from scout_rl.ladders.ladder import Ladder, level_fractions
from scout_rl.ladders.trajectory import Trajectory


def time_rungs(n_steps: int, n_levels: int) -> NDArray[np.int64]:
    """int[levels]: the steps of a solution of ``n_steps`` that are nearest the levels' shares of its time.

    It is the ladder's own rule; the states handed to it hold nothing but their index.
    """
    recorded = Trajectory(
        states=tuple(State({"step": np.array(t)}, "index", {}) for t in range(n_steps + 1)),
        actions=np.zeros(n_steps),
        rewards=np.zeros(n_steps),
        success=np.arange(n_steps) == n_steps - 1,
    )
    return np.asarray(Ladder.from_trajectories([recorded], level_fractions(n_levels)).stack()["step"][0])


def solution_ladder(solutions: Sequence[Solution], rungs: Rungs, n_levels: int) -> States:
    """The trajectory-derived ladder [contexts, levels, ...]: the solutions' states at their rungs."""
    rows = []
    for solution in solutions:
        steps = rungs(len(solution.actions), n_levels)
        rows.append({name: array[steps] for name, array in solution.states.items()})
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
