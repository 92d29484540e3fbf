"""A reference solution of any Meta-World state: the scripted policy, played to its first success."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families import goal_batch
from scout_rl.bench.families.family import States
from scout_rl.bench.families.goal_batch import Attempt
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.script import act
from scout_rl.bench.families.metaworld.simulator import HORIZON, simulator, stock_observation
from scout_rl.bench.families.metaworld.tasks import Array
from scout_rl.codecs.codec import State, installed
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.ladder import Ladder, level_fractions
from scout_rl.ladders.trajectory import Trajectory


def attempt(states: Mapping[str, Array]) -> list[Attempt]:
    """Play the scripted policy from states [n, ...]; the states of its paths are starts."""
    codec.check(states)
    attempts = []
    for part in codec.chunks(states):
        choose = lambda seen, task=part["task"]: act(task, stock_observation(seen))  # noqa: E731
        attempts += goal_batch.attempt(simulator(), part, choose, HORIZON)
    for played in attempts:
        played.solution.states["step_count"][:] = 0
    return attempts


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
