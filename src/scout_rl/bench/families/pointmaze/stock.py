"""The unmodified PointMaze environment of one context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scout_rl.bench.families.goal_stock import GoalStock, render_options
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze import codec, contexts
from scout_rl.bench.families.pointmaze.simulator import SUCCESS_DISTANCE, simulator, stock_env
from scout_rl.bench.settings.settings import Setting


class StockMaze(GoalStock):
    """The stock reset draws a start and a goal; here they are the context's."""

    success_key = "success"

    def __init__(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> None:
        maze = simulator(setting.task)
        contexts.check(maze.maze, {name: np.asarray(array)[None] for name, array in context.items()})
        super().__init__(stock_env(setting.task, **render_options(pixels)), maze.max_steps, codec.read_stock)
        self.position, self.goal = np.array(context["start"]), np.array(context["goal"])

    def start(self) -> Any:
        """The stock reset, then its last lines again with the context's start and goal."""
        env = self.env
        env.reset(seed=0)
        env.goal = self.goal.copy()
        env.update_target_site_pos()
        env.point_env.init_qpos[:2] = self.position
        observation, _ = env.point_env.reset()
        return env._get_obs(observation)

    def put(self, state: Mapping[str, Array]) -> Any:
        """Restore physics and goal."""
        codec.restore_stock(self.env, state)
        return self._present()

    def is_success(self) -> bool:
        """Within 0.45."""
        return bool(np.linalg.norm(self._present()["achieved_goal"] - self.env.goal) <= SUCCESS_DISTANCE)

    def _present(self) -> Any:
        return self.env._get_obs(self.env.point_env._get_obs()[0])
