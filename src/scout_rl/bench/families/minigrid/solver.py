"""A shortest solution of any MiniGrid state, by breadth-first search over the true state.

The search knows the whole grid. It leaves out three actions that no shortest solution needs: ``done``, dropping the key
(there is one, and carrying it forbids nothing) and closing an open door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.minigrid.simulator import FORWARD, LEFT, PICKUP, RIGHT, TOGGLE
from scout_rl.files.refusal import Refusal

_WALL, _DOOR, _KEY, _GOAL = 2, 4, 5, 8
_OPEN, _LOCKED = 0, 2
_EMPTY_CELL = (1, 0, 0)


class _Node(NamedTuple):
    """The part of a state that a solution changes."""

    cell: int
    direction: int
    opened: int
    """Bit k is set once the k-th door that was shut at the start is open."""
    holds_key: bool


def solve(state: Mapping[str, NDArray[Any]]) -> list[int] | None:
    """The actions of a shortest solution from this state; None if there is none."""
    path = _search(state)
    return None if path is None else [action for _, action in path[:-1]]


def trajectory(context: Mapping[str, NDArray[Any]]) -> Solution:
    """A shortest solution of a context or state, with every state on its path."""
    path = _search(context)
    if path is None:
        raise Refusal(f"the layout has no solution from agent_pos {tuple(int(v) for v in context['agent_pos'])}")
    states = [_state(context, node) for node, _ in path]
    stacked = {name: np.stack([s[name] for s in states]) for name in states[0]}
    return Solution(stacked, np.array([action for _, action in path[:-1]], dtype=np.int32))


def solutions(states: Mapping[str, NDArray[Any]]) -> list[Solution]:
    """Shortest solutions of n states."""
    return [trajectory(state) for state in each(states)]


def rungs(n_steps: int, n_levels: int) -> NDArray[np.int64]:
    """int[levels]: the steps at even fractions of a solution without its last step.

    So the easiest level is next to the goal.
    """
    if n_levels < 2:
        raise Refusal(f"a ladder needs at least two levels, not {n_levels}")
    # Half up, not NumPy's half to even, so that equal gaps stay equal.
    return np.floor(np.linspace(0, 1, n_levels) * (n_steps - 1) + 0.5).astype(np.int64)


def each(states: Mapping[str, NDArray[Any]]) -> list[States]:
    """A batch of states [n, ...] as n single states."""
    return [{name: a[i] for name, a in states.items()} for i in range(len(next(iter(states.values()))))]


def _doors(grid: NDArray[np.uint8]) -> list[int]:
    """Flat indices of the doors that are shut."""
    return [int(k) for k in np.flatnonzero((grid[..., 0] == _DOOR) & (grid[..., 2] != _OPEN))]


def _search(state: Mapping[str, NDArray[Any]]) -> list[tuple[_Node, int]] | None:
    """The nodes of a shortest solution, each with the action that leaves it (the last: -1)."""
    grid = np.asarray(state["grid"])
    keys = np.flatnonzero(grid[..., 0] == _KEY)
    carried = np.asarray(state["carrying"])
    if len(keys) + int(carried[0] == _KEY) > 1:
        raise Refusal("the solver handles layouts with at most one key")
    x, y = (int(v) for v in state["agent_pos"])
    start = _Node(x * grid.shape[1] + y, int(state["agent_dir"]), 0, bool(carried[0] == _KEY))
    key_colour = int(carried[1]) if start.holds_key else int(grid.reshape(-1, 3)[keys[0], 1]) if len(keys) else -1
    layout = _Layout(grid, key_colour)

    came_from, queue = {start: (start, -1)}, [start]
    for node in queue:
        for action, after in layout.successors(node):
            if after in came_from:
                continue
            came_from[after] = (node, action)
            if layout.kind[after.cell] == _GOAL:
                path = [(after, -1)]
                while path[-1][0] != start:
                    path.append(came_from[path[-1][0]])
                return path[::-1]
            queue.append(after)
    return None


class _Layout:
    """The constant part of a state, as lists for speed (a search visits thousands of nodes)."""

    def __init__(self, grid: NDArray[np.uint8], key_colour: int) -> None:
        kind, colour, door_state = (grid[..., c].reshape(-1).tolist() for c in range(3))
        self.kind: list[int] = kind
        self.ahead = (grid.shape[1], 1, -grid.shape[1], -1)
        self.door_bit = {cell: 1 << k for k, cell in enumerate(_doors(grid))}
        self.needs_key = {c for c in self.door_bit if door_state[c] == _LOCKED}
        self.key_fits = {c for c in self.door_bit if colour[c] == key_colour}

    def successors(self, node: _Node) -> Sequence[tuple[int, _Node]]:
        """Every useful action and the node it leads to: turns, and what the cell ahead allows."""
        cell, direction, opened, holds_key = node
        turns = [
            (LEFT, _Node(cell, (direction + 3) & 3, opened, holds_key)),
            (RIGHT, _Node(cell, (direction + 1) & 3, opened, holds_key)),
        ]
        front = cell + self.ahead[direction]
        kind = self.kind[front]
        shut = front in self.door_bit and not opened & self.door_bit[front]
        if shut:
            if front not in self.needs_key or (holds_key and front in self.key_fits):
                turns.append((TOGGLE, _Node(cell, direction, opened | self.door_bit[front], holds_key)))
        elif kind == _KEY and not holds_key:
            turns.append((PICKUP, _Node(cell, direction, opened, True)))
        elif kind != _WALL:
            turns.append((FORWARD, _Node(front, direction, opened, holds_key)))
        return turns


def _state(initial: Mapping[str, NDArray[Any]], node: _Node) -> States:
    """The named arrays of a node."""
    grid = np.array(initial["grid"])
    flat = grid.reshape(-1, 3)
    for k, cell in enumerate(_doors(grid)):
        if node.opened >> k & 1:
            flat[cell, 2] = _OPEN
    carrying = np.array(initial["carrying"])
    on_floor = np.flatnonzero(flat[:, 0] == _KEY)
    if node.holds_key and len(on_floor):
        carrying = flat[on_floor[0]].copy()
        flat[on_floor[0]] = _EMPTY_CELL
    return {
        "grid": grid,
        "agent_pos": np.array(divmod(node.cell, grid.shape[1]), dtype=np.int64),
        "agent_dir": np.array(node.direction, dtype=np.int64),
        "carrying": carrying,
        "step_count": np.array(0, dtype=np.int64),
    }
