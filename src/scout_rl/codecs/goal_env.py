"""Codec of any Gymnasium-Robotics goal environment: Fetch, Hand, PointMaze, AntMaze, Kitchen."""

from __future__ import annotations

from typing import Any

import numpy as np

from scout_rl.codecs.codec import Env, State
from scout_rl.codecs.kinds import descends_from
from scout_rl.codecs.mujoco import MujocoCodec, held_env
from scout_rl.files.archive import Array

MAZE_SUCCESS_DISTANCE = 0.45
"""The distance that the mazes' reset uses for ``info['success']``."""


class GoalEnvCodec(MujocoCodec):
    """MuJoCo states with the goal, and the generators of the outer and the held environment."""

    key = "goal-env"
    libraries = ("mujoco", "gymnasium-robotics")
    goal_attribute = "goal"

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether it is a goal environment of Gymnasium-Robotics that simulates with MuJoCo."""
        return descends_from(env.unwrapped, "gymnasium_robotics.core.GoalEnv") and MujocoCodec.fits(env)

    def goal(self, state: State) -> Array | None:
        """The desired goal; the parts of a dictionary goal are joined in the order of their names."""
        whole = super().goal(state)
        if whole is not None:
            return whole
        parts = sorted(name for name in state.arrays if name.startswith("attributes/goal."))
        return np.concatenate([state.arrays[name].ravel() for name in parts]) if parts else None

    def info(self, base: Env, observation: Any) -> dict[str, Any]:
        """Mazes report at reset whether the start is a success, Kitchen the tasks that are left."""
        inner = held_env(base)
        info = super().info(inner if inner is not None else base, observation)
        if hasattr(base, "maze"):
            distance = np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"])
            info["success"] = bool(distance <= MAZE_SUCCESS_DISTANCE)
        if hasattr(base, "tasks_to_complete"):
            info["tasks_to_complete"] = list(base.tasks_to_complete)
            info["episode_task_completions"] = list(base.episode_task_completions)
            info["step_task_completions"] = []
        return info
