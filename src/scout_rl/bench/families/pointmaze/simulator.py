"""n stock PointMaze environments stepped as one batch, with the same results.

The stock step clips the velocity, runs ``mj_forward`` and then ``mj_step``. The extra ``mj_forward`` changes only the
solver's warmstart, and the warmstart only the last bits of a contact with a wall. So ``mj_forward`` and constraints run
only where a contact is possible in this step or in the next, which takes its warmstart from this one. Then the physics
step reuses the positions and velocities that ``mj_forward`` computed.

One thread steps the batch: a step takes 1 to 4 microseconds, less than waking another thread. ``mujoco.rollout``
(native threads) is not faster for single steps and loses the warmstart.
"""

from __future__ import annotations

import copy
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium_robotics
import mujoco
import numpy as np
from mujoco import mj_Euler, mj_forward, mj_forwardSkip, mj_step
from numpy.typing import NDArray

from scout_rl.bench.families.goal_batch import Handle, MujocoGoalSimulator
from scout_rl.bench.families.mujoco_batch import Array, BatchPool, MujocoBatch
from scout_rl.bench.families.pointmaze.maze import Maze

TASKS = ("PointMaze_Medium-v3", "PointMaze_Large-v3")
"""A context's ``maze`` is an index into this tuple."""
SUCCESS_DISTANCE = 0.45
MAX_SPEED = 5.0
_AFTER_VELOCITY = int(mujoco.mjtStage.mjSTAGE_VEL)


def stock_env(task: str, **options: Any) -> Any:
    """The unmodified environment, without Gymnasium's checking wrappers."""
    gymnasium.register_envs(gymnasium_robotics)
    env = gymnasium.make(task, disable_env_checker=True, **options).unwrapped
    Path(env.tmp_xml_file_path).unlink(missing_ok=True)  # the stock class leaves it behind
    return env


class Simulator(MujocoGoalSimulator):
    """The stock semantics: force on a ball, clipped velocity, success within 0.45."""

    def __init__(self, task: str) -> None:
        env = stock_env(task)
        horizon = gymnasium.spec(task).max_episode_steps
        assert horizon is not None
        super().__init__(BatchPool(env.point_env.model, n_threads=1), horizon, 2, SUCCESS_DISTANCE)
        self._free = copy.copy(env.point_env.model)
        self._free.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        self._free.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self._walls = np.array([[cell == 1 for cell in row] for row in env.maze.maze_map])

    @cached_property
    def maze(self) -> Maze:
        """The maze as geometry."""
        return Maze(self._walls)

    def advance(self, state: Handle, action: Array) -> None:
        """Clip the velocity, prepare contacts, apply the force, one physics step."""
        model, free, batch = self.pool.model, self._free, state.batch
        observation, position = state.read
        speed = observation[:, 2:]
        squared = speed * speed
        if np.maximum.reduce(squared, axis=None) > MAX_SPEED**2:
            batch.write("qvel", speed.clip(-MAX_SPEED, MAX_SPEED))
        touching = self.maze.may_touch(position, squared[:, 0] + squared[:, 1]).tolist()
        ctrls, forces, datas = batch.views("ctrl"), action.tolist(), batch.data
        for i in batch.awake:
            ctrl, (x, y), data = ctrls[i], forces[i], datas[i]
            if touching[i]:
                mj_forward(model, data)
                ctrl[0], ctrl[1] = x, y
                mj_forwardSkip(model, data, _AFTER_VELOCITY, 1)
                mj_Euler(model, data)
            else:
                ctrl[0], ctrl[1] = x, y
                mj_step(free, data)

    def read(self, batch: MujocoBatch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position and velocity; the achieved goal is the position."""
        observation = batch.rows("qpos", "qvel")
        return observation, observation[:, :2]

    def judge(self, achieved: Array, goal: Array) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """1 within 0.45, else 0."""
        offset = achieved - goal
        squared = offset * offset
        success = np.sqrt(squared[:, 0] + squared[:, 1]) <= SUCCESS_DISTANCE
        return success.astype(np.float64), success


@cache
def simulator(task: str) -> Simulator:
    """The process's simulator of a task."""
    return Simulator(task)
