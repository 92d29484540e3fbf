"""n stock Meta-World environments stepped as one batch, with the same results.

A stock step spends three quarters of its time on its shaped reward and its observation. Here the reward is success - 1,
and observations are assembled for the whole batch. One batch may hold environments of different tasks.

The position of a shelf is part of the model. Each thread has its own shelf model and moves the shelf before it steps an
environment. One model per environment (23 MB each) would give the same results.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import mujoco
import numpy as np
from mujoco import (
    mj_Euler,
    mj_forward,
    mj_forwardSkip,
    mj_kinematics,
    mj_makeConstraint,
    mj_projectConstraint,
    mj_step,
)
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from scout_rl.bench.families.family import States, StepResult
from scout_rl.bench.families.goal_batch import GoalObservation, clipped
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.contexts import FRAME_SKIP, MOCAP_QUAT
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock
from scout_rl.bench.families.worker_threads import WorkerThreads
from scout_rl.bench.hardware import n_usable_cores
from scout_rl.files.refusal import Refusal

ACTION_SCALE = 1.0 / 100
"""Metres that an action of 1 moves the hand's target by."""
HORIZON = 150
"""The time limit of training and evaluation. The slowest solution of any bank has 105 steps; the stock limit is 500."""
N_ACTIONS, N_FRAME = 4, 18
_BOTH_FINGERS = np.array([1, -1], dtype=np.int8)
_RADIUS = np.array([task.radius for task in TASKS])
_AFTER_POSITION = int(mujoco.mjtStage.mjSTAGE_POS)
_shelf_models = threading.local()


class Environment:
    """One ``MjData`` of a task, with views into it that stay valid."""

    def __init__(self, index: int) -> None:
        facts = stock(index)
        self.index, self.facts, self.data = index, facts, mujoco.MjData(facts.model)
        self.ctrl: Array = self.data.ctrl
        self.mocap_pos: Array = self.data.mocap_pos[0]
        self.mocap_quat: Array = self.data.mocap_quat[0]
        bodies = (facts.hand, facts.right_claw, facts.left_claw, facts.object)
        xmat: Array = self.data.geom_xmat[facts.object_geom]
        self.parts: tuple[Array, ...] = (*(self.data.xpos[body] for body in bodies), xmat)
        """Hand, claws and object [3], and the object's rotation matrix [9]."""

    def model(self, shelf: Array) -> Any:
        """This thread's model, with the shelf in its place."""
        if self.facts.shelf is None:
            return self.facts.model
        model = getattr(_shelf_models, "model", None)
        if model is None:
            model = _shelf_models.model = copy.copy(self.facts.model)
            _shelf_models.place = model.body_pos[self.facts.shelf]
        _shelf_models.place[:] = shelf
        return model

    def restore(self, vector: Array, shelf: Array) -> None:
        """Put MuJoCo's part of a state back."""
        codec.layout().restore(self.model(shelf), self.data, vector)

    def step(self, control: Array, target: Array, shelf: Array) -> None:
        """The stock step. ``mj_forward`` is part of it, since it changes the warmstart.

        The first substep starts from what the ``mj_forward`` before it computed. Since then only the mocap target has
        moved, which collides with nothing: it changes the constraints, but no contact and no mass. Little Python runs
        here, since it holds the GIL that the other threads need.
        """
        data, model = self.data, self.facts.model if self.facts.shelf is None else self.model(shelf)
        self.ctrl[:] = control
        self.mocap_pos[:] = target
        self.mocap_quat[:] = MOCAP_QUAT
        mj_kinematics(model, data)
        mj_makeConstraint(model, data)
        mj_projectConstraint(model, data)
        mj_forwardSkip(model, data, _AFTER_POSITION, 1)
        mj_Euler(model, data)
        mj_step(model, data, FRAME_SKIP - 1)
        mj_forward(model, data)

    def pads_touch(self) -> bool:
        """Whether both finger pads press on the object: the stock ``touching_main_object``."""
        contact = self.data.contact
        pair, address = contact.geom, contact.efc_address
        on_object = (pair == self.facts.object_geom).any(axis=1) & (address >= 0)
        force = self.data.efc_force
        return all(force[address[on_object & (pair == pad).any(axis=1)]].sum() > 0 for pad in self.facts.pads)


class Handle:
    """n environments in the middle of their episodes."""

    def __init__(self, environments: list[Environment], states: Mapping[str, Array]) -> None:
        self.environments = environments
        self.n = len(environments)
        self.task = np.array(states["task"], dtype=np.int32)
        self.goal, self.shelf, self.object_start = (
            np.array(states[name], dtype=np.float64) for name in ("goal", "shelf", "object_start")
        )
        self.step_count = np.array(states["step_count"], dtype=np.int32)
        facts = [environment.facts for environment in environments]
        self.observation_low, self.observation_high, self.mocap_low, self.mocap_high = (
            np.stack([getattr(f, name) for f in facts])
            for name in ("observation_low", "observation_high", "mocap_low", "mocap_high")
        )
        self.radius = _RADIUS[self.task]
        self.awake: Sequence[int] = range(self.n)
        """The environments that are stepped."""
        self.steps = [(environment.step, place) for environment, place in zip(environments, self.shelf, strict=True)]
        """The step of each environment, and its constant argument."""
        self.targets = [environment.mocap_pos for environment in environments]
        self.parts = [part for environment in environments for part in environment.parts]
        self.frame = np.empty((self.n, N_FRAME))
        self.stacked = np.empty((self.n, 2 * N_FRAME + 3))
        """The stock observation: this frame, the one before, and the goal."""

    def read(self) -> NDArray[np.float64]:
        """The present frame."""
        return _frame(np.concatenate(self.parts).reshape(self.n, -1))


class Simulator:
    """The stock semantics: an integrating mocap target, 5 substeps, success within the task's radius of the goal."""

    def __init__(self, max_steps: int, n_threads: int | None = None) -> None:
        self.max_steps = max_steps
        self.n_actions = N_ACTIONS
        self.threads = WorkerThreads(n_usable_cores() if n_threads is None else n_threads)
        self._idle: dict[int, list[Environment]] = {index: [] for index in range(len(TASKS))}

    def reset_to(self, states: Mapping[str, Array]) -> Handle:
        """Restore named arrays [n, ...]; as after a stock reset, the previous frame is the current one."""
        codec.check(states)
        environments = [self._lend(int(index)) for index in states["task"]]
        handle = Handle(environments, states)
        weakref.finalize(handle, self._give_back, environments).atexit = False
        vectors, shelf = codec.layout().pack(states, handle.n), handle.shelf

        def restore(i: int) -> None:
            environments[i].restore(vectors[i], shelf[i])

        self.threads.each(restore, handle.n)
        handle.frame = handle.read()
        handle.stacked = np.concatenate([handle.frame, handle.frame, handle.goal], axis=1)
        return handle

    def get_states(self, state: Handle) -> States:
        """The named arrays [n, ...] from which ``reset_to`` continues bit for bit."""
        layout = codec.layout()
        vectors = np.array([layout.read(e.facts.model, e.data) for e in state.environments])
        arrays = {name: getattr(state, name).copy() for name in ("goal", "shelf", "object_start", "task", "step_count")}
        return {**layout.unpack(vectors), **arrays, **codec.identity(state.task)}

    def observe(self, state: Handle) -> GoalObservation:
        """What a policy sees."""
        return goal_view(state.stacked)

    def is_success(self, state: Handle) -> NDArray[np.bool_]:
        """The stock success indicator of the states themselves."""
        return near(state.stacked[:, 4:7], state.goal, state.radius)

    def goal_radius(self, state: Handle) -> NDArray[np.float64]:
        """[n]: the stock threshold of each task."""
        return np.asarray(state.radius)

    def pads_touch(self, state: Handle) -> NDArray[np.bool_]:
        """Whether both finger pads press on the object."""
        return np.array([environment.pads_touch() for environment in state.environments])

    def rest(self, state: Handle, resting: NDArray[np.bool_]) -> None:
        """Steps leave out these environments [n] from now on."""
        state.awake = np.flatnonzero(~resting).tolist()

    def step(self, state: Handle, action: Any) -> tuple[Handle, StepResult]:
        """One step of every environment."""
        finite, action = np.isfinite(action), clipped(action, (state.n, N_ACTIONS))
        if not finite.all():
            raise Refusal(f"the action of environment {int(np.argwhere(~finite)[0, 0])} is not finite.")
        target = (np.array(state.targets) + action[:, :3] * ACTION_SCALE).clip(state.mocap_low, state.mocap_high)
        controls = action[:, 3:] * _BOTH_FINGERS
        calls = [(*state.steps[i], controls[i], target[i]) for i in state.awake]

        def step_one(i: int) -> None:
            step, shelf, control, towards = calls[i]
            step(control, towards, shelf)

        self.threads.each(step_one, len(calls))
        previous, state.frame = state.frame, state.read()
        stacked = np.concatenate([state.frame, previous, state.goal], axis=1)
        state.stacked = stacked.clip(state.observation_low, state.observation_high)
        state.step_count += 1
        success = self.is_success(state)
        never = np.zeros(state.n, dtype=np.bool_)
        reward = success.astype(np.float64) - 1.0
        return state, StepResult(self.observe(state), reward, success, never, state.step_count >= self.max_steps)

    def _lend(self, index: int) -> Environment:
        idle = self._idle[index]
        return idle.pop() if idle else Environment(index)

    def _give_back(self, environments: list[Environment]) -> None:
        for environment in environments:
            self._idle[environment.index].append(environment)


@cache
def simulator() -> Simulator:
    """The process's simulator; its environments are made once."""
    return Simulator(HORIZON)


def stock_observation(observation: GoalObservation) -> NDArray[np.float64]:
    """The stock observation [n, 39] of a goal observation."""
    return np.concatenate([observation["observation"][:, : 2 * N_FRAME], observation["desired_goal"]], axis=1)


def _frame(rows: Array) -> NDArray[np.float64]:
    """[n, 18] of the raw rows: hand, gripper opening, object, its quaternion, and the stock padding."""
    frame = np.zeros((len(rows), N_FRAME))
    apart = rows[:, 3:6] - rows[:, 6:9]
    frame[:, :3] = rows[:, :3]
    frame[:, 3] = (np.sqrt(np.vecdot(apart, apart)) / 0.1).clip(0.0, 1.0)
    frame[:, 4:7] = rows[:, 9:12]
    frame[:, 7:11] = Rotation.from_matrix(rows[:, 12:].reshape(-1, 3, 3), assume_valid=True).as_quat()
    return frame


def goal_view(stacked: NDArray[np.float64]) -> GoalObservation:
    """The goal moved out of stock observations [n, 39]; zeros are left there, as where the stock task hides it."""
    hidden = stacked.copy()
    hidden[:, 2 * N_FRAME :] = 0.0
    return {
        "observation": hidden,
        "achieved_goal": stacked[:, 4:7].copy(),
        "desired_goal": stacked[:, 2 * N_FRAME :].copy(),
    }


def near(achieved: Array, goal: Array, radius: Array | float) -> NDArray[np.bool_]:
    """Within the radius, computed as ``np.linalg.norm`` does for one vector, to the last bit."""
    apart = achieved - goal
    return np.asarray(np.sqrt(np.vecdot(apart, apart)) <= radius)
