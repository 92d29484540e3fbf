"""n stock ``FetchPickAndPlace-v4`` environments stepped as one batch, with the same results."""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium
import gymnasium_robotics
import mujoco
import numpy as np
from gymnasium_robotics.utils import rotations
from numpy.typing import NDArray

from scout_rl.bench.families.goal_batch import Handle, MujocoGoalSimulator
from scout_rl.bench.families.mujoco_batch import Array, BatchPool, MujocoBatch

TASK = "FetchPickAndPlace-v4"
"""Never v3: its initial state is broken."""
N_SUBSTEPS = 20
HORIZON = 50
SUCCESS_DISTANCE = 0.05
ACTION_SCALE = 0.05
"""Metres that an action of 1 moves the gripper's target by."""
ROTATION = np.array([1.0, 0.0, 1.0, 0.0])
"""What the stock step adds to the welded body's quaternion: it keeps the gripper pointing down."""
DERIVED = ("xpos", "xquat", "site_xpos", "site_xmat", "cdof", "subtree_com")
"""What the stock step and observation read after ``mj_step``, one substep old."""


def stock_env(**options: Any) -> Any:
    """The unmodified environment, without Gymnasium's checking wrappers."""
    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make(TASK, disable_env_checker=True, **options).unwrapped


@cache
def shared_stock_env() -> Any:
    """The process's stock environment, for its model and initial configuration."""
    return stock_env()


class Simulator(MujocoGoalSimulator):
    """The stock semantics: mocap-driven gripper, relative finger targets, 20 substeps, sparse reward."""

    def __init__(self, n_threads: int | None = None) -> None:
        model = shared_stock_env().model
        super().__init__(BatchPool(model, derived=DERIVED, n_threads=n_threads), HORIZON, 4, SUCCESS_DISTANCE)
        self._model = model
        self._hand = int(model.eq_obj2id[0])  # the body welded to the mocap
        joints = model.actuator_trnid[:, 0]
        self._finger_qpos = model.jnt_qposadr[joints]
        robot = [model.joint(name) for name in ("robot0:r_gripper_finger_joint", "robot0:l_gripper_finger_joint")]
        self._fingers = np.array([int(joint.qposadr[0]) for joint in robot])
        self._finger_dofs = np.array([int(joint.dofadr[0]) for joint in robot])
        self._grip, self._object = (model.site(name).id for name in ("robot0:grip", "object0"))
        self._dt = N_SUBSTEPS * model.opt.timestep

    def advance(self, state: Handle, action: Array) -> None:
        """Mocap = hand + 5 cm * action, finger targets = fingers + action, then the physics."""
        batch = state.batch
        move, grip = (action[:, :3] * ACTION_SCALE).astype(np.float64), action[:, 3:].astype(np.float64)
        hand = np.array([view[self._hand] for view in batch.views("xpos")])
        turn = np.array([view[self._hand] for view in batch.views("xquat")])
        batch.write("mocap_pos", (hand + move)[:, None])
        batch.write("mocap_quat", (turn + ROTATION)[:, None])
        batch.write("ctrl", batch.read("qpos")[:, self._finger_qpos] + grip)
        batch.step(N_SUBSTEPS)

    def coast(self, state: Handle) -> Handle:
        """One step of physics without an action: the restored controls and mocap target hold the grasp."""
        state.batch.step(N_SUBSTEPS)
        state.read = self.read(state.batch)
        return state

    def read(self, batch: MujocoBatch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions, fingers, rotation and velocities as the stock environment orders them (25 numbers)."""
        positions, qvel = batch.read("site_xpos"), batch.read("qvel")
        grip, thing = positions[:, self._grip], positions[:, self._object]
        turn = np.array([view[self._object] for view in batch.views("site_xmat")]).reshape(-1, 3, 3)
        grip_velocity, velocity, spin = self._velocities(batch, qvel)
        observation = np.concatenate(
            [
                grip,
                thing,
                thing - grip,
                batch.read("qpos")[:, self._fingers],
                rotations.mat2euler(turn),
                velocity - grip_velocity,
                spin,
                grip_velocity,
                qvel[:, self._finger_dofs] * self._dt,
            ],
            axis=1,
        )
        return observation, thing

    def judge(self, achieved: Array, goal: Array) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """0 within 5 cm, else -1."""
        distance = np.linalg.norm(achieved - goal, axis=-1)
        return -(distance > SUCCESS_DISTANCE).astype(np.float32), distance < SUCCESS_DISTANCE

    def _velocities(self, batch: MujocoBatch, qvel: Array) -> NDArray[np.float64]:
        """[3, n, 3] per step: gripper, object, and the object's spin, through the stock Jacobians."""
        jacobians = np.zeros((batch.n, 3, 3, self._model.nv))
        for data, (of_grip, of_object, of_spin) in zip(batch.data, jacobians, strict=True):
            mujoco.mj_jacSite(self._model, data, of_grip, None, self._grip)
            mujoco.mj_jacSite(self._model, data, of_object, of_spin, self._object)
        return np.moveaxis((jacobians @ qvel[:, None, :, None])[..., 0] * self._dt, 1, 0)


@cache
def simulator() -> Simulator:
    """The process's simulator: all settings share one model."""
    return Simulator()
