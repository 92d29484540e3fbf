"""The unmodified ``minigrid`` environment of one context, behind the contract's `StockEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Seen, States
from scout_rl.bench.families.minigrid.codec import read_stock, restore_stock
from scout_rl.bench.families.minigrid.contexts import stock_env
from scout_rl.bench.settings.settings import Setting

_EMPTY = 1
SMALLEST_TILE = 8
"""Pixels a grid cell: below this the stock renderer's key and agent cannot be told apart."""


class Stock:
    """What the package itself does: its layout from the context's seed, its step, its view, its picture."""

    def __init__(self, setting: Setting, context: Mapping[str, NDArray[Any]], pixels: int = 0) -> None:
        self.seed = int(context["seed"])
        options: dict[str, Any] = {}
        if pixels:
            (left, right), (top, bottom) = _extent(np.asarray(context["grid"]))
            tile = max(SMALLEST_TILE, pixels // max(right - left, bottom - top))
            options = {"render_mode": "rgb_array", "tile_size": tile}
        self.env = stock_env(setting, **options)
        self._ready = False

    def reset(self) -> Any:
        """The stock layout of the context's seed, the agent where the package puts it."""
        self._ready = True
        return self.env.reset(seed=self.seed)[0]["image"]

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Start an episode in a state; the stock package has no function for it, so its attributes are set."""
        if not self._ready:
            self.reset()
        restore_stock(self.env, state)
        return self.env.gen_obs()["image"]

    def state(self) -> States:
        """The named arrays of the present state."""
        return read_stock(self.env)

    def is_success(self) -> bool:
        """Whether the agent stands on the goal."""
        below = self.env.grid.get(*self.env.agent_pos)
        return below is not None and below.type == "goal"

    def step(self, action: Any) -> Seen:
        """One stock step; nothing but the goal terminates an episode."""
        observation, _, terminated, truncated, _ = self.env.step(int(action))
        return Seen(observation["image"], bool(terminated), bool(terminated or truncated))

    def render(self) -> NDArray[np.uint8]:
        """The layout, without the empty grid around it; what the agent sees is highlighted."""
        (left, right), (top, bottom) = np.array(_extent(self.env.grid.encode())) * self.env.tile_size
        return np.asarray(self.env.render(), dtype=np.uint8)[top:bottom, left:right]


def _extent(grid: NDArray[np.uint8]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The columns and the rows, first and behind the last, that hold anything."""
    x, y = np.nonzero(grid[..., 0] != _EMPTY)
    return (int(x.min()), int(x.max()) + 1), (int(y.min()), int(y.max()) + 1)
