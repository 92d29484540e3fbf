"""The unmodified Meta-World environment of one context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.goal_stock import GoalStock, render_options
from scout_rl.bench.families.metaworld import codec, contexts
from scout_rl.bench.families.metaworld.simulator import HORIZON, N_ACTIONS, goal_view
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock_env
from scout_rl.bench.settings.settings import Setting

CAMERA = "corner"
"""A stock camera that shows the hand, the object, the goal and the shelf."""


class StockTask(GoalStock):
    """The stock task with the context's vector and a visible goal."""

    success_key = "success"

    def __init__(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> None:
        contexts.check({name: np.asarray(array)[None] for name, array in context.items()})
        options = render_options(pixels)
        if options:
            options["camera_name"] = CAMERA
        self.index = int(context["task"])
        super().__init__(stock_env(TASKS[self.index].name, **options), HORIZON, codec.read_stock)
        self.vector = np.array(context["vector"])
        self._ready = False

    def start(self) -> Any:
        """The stock reset."""
        self._ready = True
        self.env._last_rand_vec = self.vector.copy()
        return self.env.reset()[0]

    def put(self, state: Mapping[str, Array]) -> Any:
        """Restore physics, goal and shelf; as after a stock reset, the previous frame is the current one."""
        if not self._ready:
            self.start()
        return codec.restore_stock(self.env, state)

    def is_success(self) -> bool:
        """Within the task's radius, as the stock reward judges it."""
        return bool(self.env.evaluate_state(self.env._get_obs(), np.zeros(N_ACTIONS))[1]["success"])

    def view(self, observation: Any) -> States:
        """The goal moved out of the stock vector."""
        return {name: array[0] for name, array in goal_view(np.asarray(observation)[None]).items()}

    def render(self) -> NDArray[np.uint8]:
        """The stock picture, turned: the camera hangs upside down."""
        return np.ascontiguousarray(super().render()[::-1, ::-1])
