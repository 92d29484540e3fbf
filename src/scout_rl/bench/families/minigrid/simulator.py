"""Many MiniGrid environments stepped as one batch: walls, doors, keys and goals, in JAX.

The semantics are those of the stock ``minigrid`` package, bit for bit (tests/bench/families/test_minigrid_parity.py):
its seven actions, its 7x7 partial view with the visibility rule, its reward and its time limit. What makes it fast:

- A cell is one byte, so a layout is a short vector and a write is one vectorised select.
- The layout is stored with walls around it, so the view is one gather at fixed offsets per direction.
- A row of the view is the bits of an integer, so visibility spreads along it with a few shifts instead of branches.

All functions are pure and written for one environment; ``jax.vmap`` makes the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import StepResult

Array = Any

VIEW = 7
"""Cells along one side of the square partial view."""
MARGIN = VIEW - 2
"""Walls stored around the layout: the agent is at least one cell inside and sees six cells ahead."""
N_ACTIONS = 7
LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(N_ACTIONS)

# A cell byte: kind in bits 0-2, colour in bits 3-5, door state (0 open, 1 closed, 2 locked) in bits 6-7.
UNSEEN_KIND, EMPTY_KIND, WALL_KIND, GOAL_KIND, DOOR_KIND, KEY_KIND = range(6)
STOCK_TYPE = np.array([0, 1, 2, 8, 4, 5], dtype=np.uint8)
"""The stock package's object index of each kind."""
EMPTY = EMPTY_KIND
WALL = WALL_KIND | 5 << 3  # grey, as the stock package draws cells outside the grid
STATE_BIT = 1 << 6


class State(NamedTuple):
    """One environment. A batch of them has a leading axis on every field."""

    cells: Array
    """uint8[n_cells]: the layout with its margin, row after row, one byte per cell."""
    position: Array
    """int32: the agent's index into ``cells``."""
    direction: Array
    """int32: 0 right, 1 down, 2 left, 3 up."""
    carrying: Array
    """uint8: the byte of the carried object; ``EMPTY`` when there is none."""
    step_count: Array
    """int32: steps since the episode began."""


@dataclass(frozen=True)
class Simulator:
    """Steps layouts of one size and time limit. It is hashable, so that ``jax.jit`` takes it as a static argument."""

    width: int
    height: int
    max_steps: int

    @property
    def stride(self) -> int:
        """Distance in ``cells`` from a cell to the one below; rows share their left and right margins."""
        return self.width + MARGIN

    @property
    def n_cells(self) -> int:
        """Length of ``State.cells``."""
        return (self.height + 2 * MARGIN) * self.stride + MARGIN

    def index(self, x: Array, y: Array) -> Array:
        """Index into ``State.cells`` of the cell at column x and row y of the layout."""
        return (y + MARGIN) * self.stride + x + MARGIN

    def _forward(self) -> NDArray[np.int32]:
        """int32[4]: the offset in ``cells`` from the agent to the cell in front of it, per direction."""
        return np.array([1, self.stride, -1, -self.stride], dtype=np.int32)

    def _view_offsets(self) -> NDArray[np.int32]:
        """int32[4, 49]: offsets from the agent to the cells of its view (column i from its left, row j from afar)."""
        forward = self._forward()
        right = np.roll(forward, -1)
        i, j = np.divmod(np.arange(VIEW * VIEW, dtype=np.int32), VIEW)
        ahead, aside = VIEW - 1 - j, i - VIEW // 2
        return np.asarray(forward[:, None] * ahead + right[:, None] * aside, dtype=np.int32)

    def _rewards(self) -> NDArray[np.float32]:
        """float32[max_steps + 1]: the stock reward for success at step t, rounded once from float64."""
        return (1 - 0.9 * (np.arange(self.max_steps + 1) / self.max_steps)).astype(np.float32)

    def observe(self, state: State) -> Array:
        """uint8[7, 7, 3]: the agent's partial view; the object that it carries is drawn in its own cell."""
        offsets = jnp.asarray(self._view_offsets())[state.direction]
        cells = state.cells[state.position + offsets]
        visible = _visible(_see_behind(cells))
        agent_cell = VIEW // 2 * VIEW + VIEW - 1
        cells = jnp.where(jnp.arange(VIEW * VIEW) == agent_cell, state.carrying, cells)
        cells = jnp.where(visible, cells, jnp.uint8(0))
        kind = cells & 7
        stock_type = jnp.where(kind == GOAL_KIND, STOCK_TYPE[GOAL_KIND], kind)
        return jnp.stack([stock_type, (cells >> 3) & 7, cells >> 6], axis=-1).reshape(VIEW, VIEW, 3)

    def move(self, state: State, action: Array) -> tuple[State, Array]:
        """The state after an action, and whether it reached the goal."""
        front_index = state.position + jnp.asarray(self._forward())[state.direction]
        front = state.cells[front_index]
        kind, carrying = front & 7, state.carrying

        turn = jnp.where(action == LEFT, 3, jnp.where(action == RIGHT, 1, 0))
        free = (kind == EMPTY_KIND) | (kind == GOAL_KIND) | ((kind == DOOR_KIND) & (front < STATE_BIT))
        moves = (action == FORWARD) & free
        picks = (action == PICKUP) & (kind == KEY_KIND) & (carrying == EMPTY)
        drops = (action == DROP) & (front == EMPTY) & (carrying != EMPTY)
        fits = ((carrying & 7) == KEY_KIND) & ((carrying >> 3) == ((front >> 3) & 7))
        toggles = (
            (action == TOGGLE) & (kind == DOOR_KIND) & ((front < 2 * STATE_BIT) | fits)
        )  # not locked, or the key fits
        toggled = jnp.where(front < STATE_BIT, front | STATE_BIT, front & (STATE_BIT - 1))  # shut it, or open it

        new_front = jnp.where(picks, jnp.uint8(EMPTY), front)
        new_front = jnp.where(drops, carrying, new_front)
        new_front = jnp.where(toggles, toggled, new_front)
        carrying = jnp.where(picks, front, jnp.where(drops, jnp.uint8(EMPTY), carrying))
        return State(
            cells=jnp.where(jnp.arange(self.n_cells) == front_index, new_front, state.cells),
            position=jnp.where(moves, front_index, state.position),
            direction=(state.direction + turn) & 3,
            carrying=carrying,
            step_count=state.step_count + 1,
        ), moves & (kind == GOAL_KIND)

    def step(self, state: State, action: Array) -> tuple[State, StepResult]:
        """One stock step: the action, then the view from the new state. Success ends an episode."""
        state, terminated = self.move(state, action)
        reward = jnp.where(terminated, jnp.asarray(self._rewards())[state.step_count], 0.0)
        truncated = state.step_count >= self.max_steps
        return state, StepResult(self.observe(state), reward, terminated, terminated, truncated)


def _see_behind(cell: Array) -> Array:
    """Walls and doors that are not open block the view."""
    kind = cell & 7
    return (kind != WALL_KIND) & ((kind != DOOR_KIND) | (cell < STATE_BIT))


def _visible(see_behind: Array) -> Array:
    """bool[49]: which cells of a view are visible, from which can be seen through (``Grid.process_vis``).

    Row by row away from the agent. Within a row, sight spreads sideways through transparent cells, first to the right,
    then to the left. Each cell that spreads also lights the cells behind it and behind its neighbour. A row is an
    integer whose bit i is column i.
    """
    bits = jnp.uint32(1) << jnp.arange(VIEW, dtype=jnp.uint32)
    through = jnp.sum(see_behind.reshape(VIEW, VIEW) * bits[:, None], axis=0, dtype=jnp.uint32)
    all_columns = (1 << VIEW) - 1
    row = jnp.uint32(1 << VIEW // 2)
    rows = []
    for j in reversed(range(VIEW)):
        t = through[j]
        row = _spread(row, t, left=False)
        rightward = row & t & (all_columns >> 1)
        row = _spread(row, t, left=True)
        leftward = row & t & (all_columns - 1)
        rows.append(row)
        row = (rightward | rightward << 1) | (leftward | leftward >> 1)
    lit = jnp.stack(rows[::-1])
    return ((lit[None, :] >> jnp.arange(VIEW, dtype=jnp.uint32)[:, None]) & 1).astype(bool).reshape(-1)


def _spread(row: Array, through: Array, *, left: bool) -> Array:
    """Spread light one way along a row, in doubling strides: a lit transparent cell lights its neighbour."""
    mask = jnp.uint32((1 << VIEW) - 1)
    for stride in (1, 2, 4):
        if left:
            row = row | (row & through) >> stride
            through = through & through << stride
        else:
            row = row | ((row & through) << stride) & mask
            through = through & through >> stride
    return row
