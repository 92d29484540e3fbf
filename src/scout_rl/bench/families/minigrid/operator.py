"""The hand-built G(x, l) of MiniGrid: the stages of DoorKey, and the route through MultiRoom.

Both take states on the solver's path: DoorKey by what has been achieved, MultiRoom by how far the agent has come. So
every start lies on a solution of its context, and fewer steps remain at each level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.minigrid.solver import each, trajectory
from scout_rl.files.refusal import Refusal

_DOOR, _KEY, _LOCKED = 4, 5, 2
N_STAGES = 5
"""Levels of the DoorKey ladder: the target start and the four stages."""


def starts(contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
    """The ladder as named arrays [contexts, levels, ...]; level 0 is the target start."""
    rows = [_starts(context, n_levels) for context in each(contexts)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _starts(context: States, n_levels: int) -> States:
    path = trajectory(context)
    has_key = bool((context["grid"][..., 0] == _KEY).any())
    times = _stages(path, n_levels) if has_key else _along_route(path, n_levels)
    return {name: array[times] for name, array in path.states.items()}


def _stages(path: Solution, n_levels: int) -> list[int]:
    """Target start; carrying the key; with it at the locked door; past the opened door; next to the goal."""
    if n_levels != N_STAGES:
        raise Refusal(
            f"the hand-built DoorKey ladder has {N_STAGES} levels, not {n_levels}; "
            "take a solver ladder for other counts"
        )
    states = path.states
    carrying = states["carrying"][:, 0] == _KEY
    door = states["grid"][..., 0] == _DOOR
    locked = (door & (states["grid"][..., 2] == _LOCKED)).any(axis=(1, 2))
    door_column = np.argwhere(door[0])[0, 0]
    past = states["agent_pos"][:, 0] > door_column
    at_the_door = int(np.flatnonzero(locked)[-1])
    next_to_goal = len(path.actions) - 1
    return [0, int(np.argmax(carrying)), at_the_door, int(np.argmax(past)), next_to_goal]


def _along_route(path: Solution, n_levels: int) -> list[int]:
    """Even fractions of the route's cells, from the start to the last cell before the goal.

    The agent looks at the route's next cell. Doors behind it are open, and a door ahead is shut.
    """
    if n_levels < 2:
        raise Refusal(f"a ladder needs at least two levels, not {n_levels}")
    position = path.states["agent_pos"]
    leaves = np.flatnonzero((position[1:] != position[:-1]).any(axis=1))
    arrives = np.concatenate([[0], leaves[:-1] + 1])
    facing = path.states["agent_dir"]
    towards_next = [
        int(next(t for t in range(first, last + 1) if facing[t] == facing[last]))
        for first, last in zip(arrives, leaves, strict=True)
    ]
    fractions = np.linspace(0, 1, n_levels)[1:]
    cells = np.floor(fractions * (len(leaves) - 1) + 0.5).astype(int)
    return [0, *(towards_next[c] for c in cells)]
