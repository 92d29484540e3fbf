"""A reference solution of any Meta-World state: the scripted policy, played to its first success."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.script import act
from scout_rl.bench.families.metaworld.simulator import Simulator, stock_observation
from scout_rl.bench.families.metaworld.tasks import Array
from scout_rl.codecs.codec import State, installed
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.ladder import Ladder, level_fractions
from scout_rl.ladders.trajectory import Trajectory

HORIZON = 150
"""The time limit of training and evaluation. The slowest solution of any bank has 106 steps; the stock limit is 500."""


@cache
def shared_simulator() -> Simulator:
    """The simulator that builds and checks ladders; its environments are made once."""
    return Simulator(HORIZON)


class Attempt(NamedTuple):
    """What the scripted policy did from one start."""

    solution: Solution
    achieved: NDArray[np.float64]
    """[T + 1, 3]: where the object was."""
    solved: bool


def attempt(states: Mapping[str, Array], max_steps: int = HORIZON) -> list[Attempt]:
    """Play the scripted policy from states [n, ...], each for at least one step and up to its first success."""
    codec.check(states)
    return [result for part in codec.chunks(states) for result in _attempt(part, max_steps)]


def _attempt(states: States, max_steps: int) -> list[Attempt]:
    simulator = shared_simulator()
    handle = simulator.reset_to(states)
    path, observations = [simulator.get_states(handle)], [simulator.observe(handle)]
    moves: list[Array] = []
    steps, solved = np.zeros(handle.n, dtype=int), np.zeros(handle.n, dtype=np.bool_)
    while not solved.all() and len(moves) < max_steps:
        moves.append(act(handle.task, stock_observation(observations[-1])))
        handle, result = simulator.step(handle, moves[-1])
        path.append(simulator.get_states(handle))
        observations.append(result.observation)
        steps[~solved] += 1
        solved |= result.success
    whole = {name: np.stack([states[name] for states in path]) for name in path[0]}
    whole["step_count"][:] = 0
    actions, achieved = np.stack(moves), np.stack([s["achieved_goal"] for s in observations])
    return [
        Attempt(
            Solution({name: array[: t + 1, i] for name, array in whole.items()}, actions[:t, i]),
            achieved[: t + 1, i],
            bool(solved[i]),
        )
        for i, t in enumerate(steps)
    ]


def solved(states: Mapping[str, Array]) -> list[Attempt]:
    """Attempts that all succeed; else a ``ValueError`` with the number that did."""
    attempts = attempt(states)
    failed = [i for i, result in enumerate(attempts) if not result.solved]
    if failed:
        raise Refusal(
            f"the scripted policy solves {len(attempts) - len(failed)} of {len(attempts)} states in {HORIZON} steps; "
            f"the first that it does not is {failed[0]}, goal {states['goal'][failed[0]].round(3).tolist()}"
        )
    return attempts


def along_the_path(attempts: list[Attempt], n_levels: int) -> States:
    """A ladder at fractions of the object's path."""
    return Ladder.from_trajectories([_trajectory(a) for a in attempts], level_fractions(n_levels), "path").stack()


def _trajectory(played: Attempt) -> Trajectory:
    states, actions = played.solution
    library = {"metaworld": installed("metaworld")}
    success = np.arange(1, len(actions) + 1) == len(actions)
    return Trajectory(
        states=tuple(
            State({name: array[t] for name, array in states.items()}, "metaworld-batch", library)
            for t in range(len(actions) + 1)
        ),
        actions=actions,
        rewards=success - 1.0,
        success=success,
        achieved=played.achieved,
        desired=states["goal"][0],
    )
