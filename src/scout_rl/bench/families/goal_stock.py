"""What the three MuJoCo families' `StockEnv` share: one unmodified environment of a context.

The horizon is the setting's. The observation has the form that the batch simulator shows. Everything else is the stock
environment's own.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States, StockStep
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.picture import mujoco_renders


def render_options(pixels: int) -> dict[str, Any]:
    """Arguments of a stock environment that renders a square of ``pixels``; none for 0."""
    if not pixels:
        return {}
    if not mujoco_renders():
        raise Refusal("MuJoCo finds no offscreen GL here to render with: set MUJOCO_GL to osmesa or egl.")
    return {"render_mode": "rgb_array", "width": pixels, "height": pixels}


class GoalStock(ABC):
    """A family fills in how a context and a state are placed in the environment; ``read_stock`` is its codec's."""

    success_key: str
    """The key of the stock step's info that holds success."""

    def __init__(self, env: Any, max_steps: int, read_stock: Callable[[Any], States]) -> None:
        self.env, self.max_steps, self.read_stock = env, max_steps, read_stock
        self.step_count = 0
        self.shown: Any = None
        weakref.finalize(self, env.close).atexit = False  # frees its renderer

    @abstractmethod
    def start(self) -> Any:
        """A stock reset with the context's start and goal; returns the stock observation."""

    @abstractmethod
    def put(self, state: Mapping[str, Array]) -> Any:
        """Restore the named arrays of one state; returns the stock observation."""

    @abstractmethod
    def is_success(self) -> bool:
        """The stock success indicator of the present state."""

    def view(self, observation: Any) -> States:
        """The stock observation as the batch simulator shows it, of one environment."""
        return {name: np.array(array) for name, array in observation.items()}

    def reset(self) -> States:
        """Start the context as the stock environment does."""
        self.step_count = 0
        self.shown = self.start()
        return self.view(self.shown)

    def restore(self, state: Mapping[str, Array]) -> States:
        """Continue the episode from the named arrays of one state and its step counter."""
        self.shown = self.put(state)
        self.step_count = int(state["step_count"])
        return self.view(self.shown)

    def state(self) -> States:
        """The named arrays of the present state."""
        return {**self.read_stock(self.env), "step_count": np.array(self.step_count, dtype=np.int32)}

    def step(self, action: Any) -> StockStep:
        """One stock step."""
        self.shown, reward, terminated, _, info = self.env.step(np.asarray(action))
        self.step_count += 1
        over = bool(terminated) or self.step_count >= self.max_steps
        success = bool(info[self.success_key])
        return StockStep(self.view(self.shown), success, over, float(reward), bool(terminated), info)

    def render(self) -> NDArray[np.uint8]:
        """The stock picture."""
        return np.asarray(self.env.render(), dtype=np.uint8)
