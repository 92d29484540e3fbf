"""The hand-built G(x, l) of Meta-World: the object at a fraction of the solver's path for it, up to success.

- A task that lifts the object: it is grasped and at rest, at that fraction of its path after the grasp.
- Push: the object lies on the table at that fraction of the way to where success begins. The open hand is above it, at
  the height of the stock reset. (With the hand at its stock place, its way to the object grows with the level. Then the
  solver's remaining steps rise somewhere on the ladder in 71 of 100 contexts.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.contexts import move_hand, target_starts
from scout_rl.bench.families.metaworld.simulator import simulator
from scout_rl.bench.families.metaworld.solver import along_the_path, solved
from scout_rl.bench.families.metaworld.tasks import TASKS, Array
from scout_rl.ladders.ladder import level_fractions

SETTLE = 20
"""Steps in which a carried object comes to rest; it then moves less than 2 mm per step."""


def starts(contexts: Mapping[str, Array], n_levels: int) -> States:
    """The ladder as named arrays [contexts, levels, ...]; level 0 is the target start."""
    fractions = level_fractions(n_levels)
    target = target_starts(contexts)
    ladder = {name: np.repeat(array[:, None], n_levels, axis=1) for name, array in target.items()}
    carried = np.array([TASKS[index].carried for index in target["task"]])
    for rows, build in ((carried, _grasped), (~carried, _lying)):
        if rows.any():
            scaffolds = build({name: array[rows] for name, array in target.items()}, fractions)
            for name, array in scaffolds.items():
                ladder[name][rows, 1:] = array
    return ladder


def _grasped(target: States, fractions: tuple[float, ...]) -> States:
    """[contexts, scaffolds, ...]: states on the solver's path, brought to rest with the gripper closed."""
    path = along_the_path(solved(target), len(fractions))
    moving = {name: _flat(array[:, 1:]) for name, array in path.items()}
    return _as_starts(codec.joined(_at_rest(part) for part in codec.chunks(moving)), len(fractions) - 1)


def _at_rest(moving: States) -> States:
    batch = simulator()
    hand = batch.observe(batch.reset_to(moving))["observation"][:, :3]
    # The hand trails its target by centimetres. With the target at the hand, the hand stops.
    handle = batch.reset_to({**moving, "mocap_pos": hand})
    still = np.tile(np.array([0, 0, 0, 1], dtype=np.float32), (handle.n, 1))
    for _ in range(SETTLE):
        handle, _ = batch.step(handle, still)
    return batch.get_states(handle)


def _lying(target: States, fractions: tuple[float, ...]) -> States:
    """[contexts, scaffolds, ...]: the object on the table at fractions of the way, the hand above it."""
    way = target["goal"] - target["object_start"]
    radius = np.array([TASKS[index].radius for index in target["task"]])
    way *= (1 - radius / np.linalg.norm(way, axis=1))[:, None]
    place = _flat(target["object_start"][:, None] + np.multiply.outer(way, fractions[1:]).swapaxes(1, 2))
    many = {name: np.repeat(array, len(fractions) - 1, axis=0) for name, array in target.items()}
    many["qpos"][:, 9:12] = place
    return _as_starts(codec.joined(_hand_above(part) for part in codec.chunks(many)), len(fractions) - 1)


def _hand_above(states: States) -> States:
    batch = simulator()
    handle = batch.reset_to(states)

    def move(i: int) -> None:
        facts, data = handle.environments[i].facts, handle.environments[i].data
        move_hand(facts.model, data, np.array([*states["qpos"][i, 9:11], facts.hand_init[2]]))

    batch.threads.each(move, handle.n)
    return batch.get_states(handle)


def _flat(array: Array) -> Array:
    return array.reshape(-1, *array.shape[2:])


def _as_starts(states: States, n_scaffolds: int) -> States:
    states["step_count"][:] = 0
    return {name: array.reshape(-1, n_scaffolds, *array.shape[1:]) for name, array in states.items()}
