"""MiniGrid states as named arrays, to and from the batch simulator and the stock environment.

One state is a dict of five arrays; a batch has equal leading axes on each:

- ``grid`` uint8[width, height, 3]: the stock ``Grid.encode()`` (object, colour, state);
- ``agent_pos`` int64[2] and ``agent_dir`` int64;
- ``carrying`` uint8[3]: the carried object, encoded as a cell; zeros when there is none;
- ``step_count`` int64; 0 if it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.minigrid.simulator import EMPTY, MARGIN, STOCK_TYPE, WALL, Simulator, State
from scout_rl.files.refusal import Refusal

NOTHING = np.zeros(3, dtype=np.uint8)
"""``carrying`` when the agent carries nothing (no object has type 0)."""

_KIND = np.full(256, 255, dtype=np.uint8)
_KIND[STOCK_TYPE] = np.arange(len(STOCK_TYPE))


def to_simulator(simulator: Simulator, states: Mapping[str, NDArray[Any]]) -> State:
    """Pack named arrays (any leading axes) into the simulator's state."""
    grid = np.asarray(states["grid"])
    if grid.shape[-3:-1] != (simulator.width, simulator.height):
        raise Refusal(
            f"a grid of {grid.shape[-3]}x{grid.shape[-2]} cells cannot be restored in a simulator of "
            f"{simulator.width}x{simulator.height}"
        )
    lead = grid.shape[:-3]
    padded = np.full((*lead, simulator.height + 2 * MARGIN, simulator.stride), WALL, dtype=np.uint8)
    rows = _pack(grid).swapaxes(-1, -2)
    padded[..., MARGIN : MARGIN + simulator.height, MARGIN : MARGIN + simulator.width] = rows
    tail = np.full((*lead, MARGIN), WALL, dtype=np.uint8)
    x, y = np.moveaxis(np.asarray(states["agent_pos"]), -1, 0)
    return State(
        cells=np.concatenate([padded.reshape(*lead, -1), tail], axis=-1),
        position=simulator.index(x, y).astype(np.int32),
        direction=np.asarray(states["agent_dir"]).astype(np.int32),
        carrying=np.maximum(_pack(np.asarray(states["carrying"])), np.uint8(EMPTY)),
        step_count=np.broadcast_to(states.get("step_count", 0), lead).astype(np.int32),
    )


def from_simulator(simulator: Simulator, state: State) -> States:
    """Unpack the simulator's state (any leading axes) into named arrays."""
    cells, position = np.asarray(state.cells), np.asarray(state.position)
    body = cells[..., : cells.shape[-1] - MARGIN].reshape(*cells.shape[:-1], -1, simulator.stride)
    rows = body[..., MARGIN : MARGIN + simulator.height, MARGIN : MARGIN + simulator.width]
    y, x = np.divmod(position, simulator.stride)
    return {
        "grid": _unpack(rows.swapaxes(-1, -2)),
        "agent_pos": np.stack([x - MARGIN, y - MARGIN], axis=-1).astype(np.int64),
        "agent_dir": np.asarray(state.direction, dtype=np.int64),
        "carrying": _unpack(np.where(np.asarray(state.carrying) == EMPTY, np.uint8(0), state.carrying)),
        "step_count": np.asarray(state.step_count, dtype=np.int64),
    }


def read_stock(env: Any) -> States:
    """The state of a stock environment."""
    env = env.unwrapped
    return {
        "grid": env.grid.encode(),
        "agent_pos": np.array(env.agent_pos, dtype=np.int64),
        "agent_dir": np.array(env.agent_dir, dtype=np.int64),
        "carrying": NOTHING.copy() if env.carrying is None else np.array(env.carrying.encode(), dtype=np.uint8),
        "step_count": np.array(env.step_count, dtype=np.int64),
    }


def restore_stock(env: Any, state: Mapping[str, NDArray[Any]]) -> None:
    """Put a stock environment (already reset once) into a state."""
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import WorldObj

    env = env.unwrapped
    env.grid, _ = Grid.decode(np.asarray(state["grid"]))
    env.agent_pos = tuple(int(v) for v in state["agent_pos"])
    env.agent_dir = int(state["agent_dir"])
    env.carrying = WorldObj.decode(*(int(v) for v in state["carrying"]))
    env.step_count = int(state["step_count"])


def _pack(encoded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8[..., 3] of the stock encoding to one byte per cell."""
    kind = _KIND[encoded[..., 0]]
    if (kind == 255).any():
        unknown = int(encoded[..., 0][kind == 255].flat[0])
        raise Refusal(f"object type {unknown} is not simulated: only walls, doors, keys and goals are")
    return np.asarray(kind | encoded[..., 1] << 3 | encoded[..., 2] << 6, dtype=np.uint8)


def _unpack(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The inverse of ``_pack``."""
    return np.stack([STOCK_TYPE[cells & 7], cells >> 3 & 7, cells >> 6], axis=-1)
