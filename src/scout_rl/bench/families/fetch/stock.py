"""The unmodified ``FetchPickAndPlace-v4`` of one context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.fetch import codec, contexts
from scout_rl.bench.families.fetch.simulator import HORIZON, stock_env
from scout_rl.bench.families.goal_stock import GoalStock, render_options
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.settings.settings import Setting


class StockFetch(GoalStock):
    """The stock reset draws an object and a goal; here they are the context's."""

    success_key = "is_success"

    def __init__(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> None:
        contexts.check({name: np.asarray(array)[None] for name, array in context.items()})
        super().__init__(stock_env(**render_options(pixels)), HORIZON, codec.read_stock)
        self.object_xy, self.goal = np.array(context["object_xy"]), np.array(context["goal"])

    def start(self) -> Any:
        """The stock reset, then its last lines again with the context's object and goal."""
        env = self.env
        env.reset(seed=0)
        place = env._utils.get_joint_qpos(env.model, env.data, "object0:joint")
        place[:2] = self.object_xy
        env._utils.set_joint_qpos(env.model, env.data, "object0:joint", place)
        env.data.qacc_warmstart[:] = 0  # the stock reset computes forces once, not twice
        mujoco.mj_forward(env.model, env.data)
        env.goal = self.goal.copy()
        return env._get_obs()

    def put(self, state: Mapping[str, Array]) -> Any:
        """Restore physics, goal, and the derived arrays that the stock observation reads one substep late."""
        codec.restore_stock(self.env, state)
        return self.env._get_obs()

    def render(self) -> NDArray[np.uint8]:
        """The stock picture. Drawing moves the goal's site and recomputes derived arrays; both are restored."""
        state, sites = self.state(), self.env.model.site_pos.copy()
        picture = super().render()
        self.env.model.site_pos[:] = sites
        self.put(state)
        return picture

    def is_success(self) -> bool:
        """Within 5 cm."""
        return bool(self.env._is_success(self.env._get_obs()["achieved_goal"], self.env.goal))
