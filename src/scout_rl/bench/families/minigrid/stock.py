"""The unmodified ``minigrid`` environment of one context, behind the contract's `StockEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States, StockStep
from scout_rl.bench.families.minigrid.codec import read_stock, restore_stock
from scout_rl.bench.families.minigrid.contexts import stock_env
from scout_rl.bench.settings.settings import Setting

_EMPTY = 1
SMALLEST_TILE = 8
"""Pixels per grid cell; with fewer, key and agent look alike."""


class Stock:
    """The package's own layout from the context's seed, step, view and picture."""

    def __init__(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> None:
        self.seed = int(context["seed"])
        options: dict[str, Any] = {}
        if pixels:
            (left, right), (top, bottom) = _extent(np.asarray(context["grid"]))
            tile = max(SMALLEST_TILE, pixels // max(right - left, bottom - top))
            options = {"render_mode": "rgb_array", "tile_size": tile}
        self.env = stock_env(setting, **options)
        self.shown: Any = None
        self._ready = False

    def reset(self) -> Any:
        """The stock layout and agent of the context's seed."""
        self._ready = True
        self.shown = self.env.reset(seed=self.seed)[0]
        return self.shown["image"]

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Start an episode in a state, by setting attributes: the stock package has no function for it."""
        if not self._ready:
            self.reset()
        restore_stock(self.env, state)
        self.shown = self.env.gen_obs()
        return self.shown["image"]

    def state(self) -> States:
        """The named arrays of the present state."""
        return read_stock(self.env)

    def is_success(self) -> bool:
        """Whether the agent stands on the goal."""
        below = self.env.grid.get(*self.env.agent_pos)
        return below is not None and below.type == "goal"

    def step(self, action: Any) -> StockStep:
        """One stock step; only the goal terminates an episode."""
        self.shown, reward, terminated, truncated, info = self.env.step(int(action))
        over = bool(terminated or truncated)
        return StockStep(self.shown["image"], bool(terminated), over, float(reward), bool(terminated), info)

    def render(self) -> NDArray[np.uint8]:
        """The stock picture, without the empty grid around the layout."""
        (left, right), (top, bottom) = np.array(_extent(self.env.grid.encode())) * self.env.tile_size
        return np.asarray(self.env.render(), dtype=np.uint8)[top:bottom, left:right]


def _extent(grid: NDArray[np.uint8]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The range of columns and the range of rows that are not empty; ends excluded."""
    x, y = np.nonzero(grid[..., 0] != _EMPTY)
    return (int(x.min()), int(x.max()) + 1), (int(y.min()), int(y.max()) + 1)
