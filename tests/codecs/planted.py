"""Environments, wrappers and codecs with a known answer: some right, some with one planted fault."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import gymnasium as gym
import mujoco
import numpy as np

from scout_rl.codecs.codec import State
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.codecs.goal_env import GoalEnvCodec
from scout_rl.codecs.mujoco import MujocoCodec
from scout_rl.files.archive import pack_json


def metaworld_task(name: str, seed: int = 0) -> Any:
    """One Meta-World task with a seeded context, as its own documentation makes it."""
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE

    env = ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE[f"{name}-goal-observable"](seed=seed)
    env._freeze_rand_vec = False
    env.seeded_rand_vec = True
    return env


class Thing:
    """An object of one's own that a state must carry, shared references included."""

    def __init__(self, where: int) -> None:
        self.where = where
        self.mates: list[Thing] = []


class Walk(gym.Env):
    """A noisy walk to a flag, with objects, a queue and its own time limit of 12 steps."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.normal())
        self.flag = Thing(int(self.np_random.integers(3, 6)))
        self.flag.mates = [self.flag, Thing(1)]
        self.chosen = self.flag.mates[1]
        self.t = 0
        return self._get_obs(), self._get_info()

    def step(self, action):
        self.x += (2 * int(action) - 1) * 0.5 + 0.1 * float(self.np_random.normal())
        self.chosen.where += 2
        self.t += 1
        self.last = int(action)  # exists only after the first step
        reached = self.x >= self.flag.where
        return self._get_obs(), float(reached), bool(reached), self.t >= 12, self._get_info()

    def _get_obs(self):
        return np.array([self.x, self.flag.where, self.flag.mates[1].where])

    def _get_info(self):
        return {"success": self.x >= self.flag.where}


def walk() -> Walk:
    return Walk()


PENDULUM = """<mujoco><worldbody><body name="arm"><joint name="hinge" type="hinge" axis="0 1 0"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.5"/></body></worldbody>
<actuator><motor joint="hinge"/></actuator></mujoco>"""


class Pendulums(gym.Env):
    """Two simulations in a class of one's own, which has neither `model` and `data` nor `_get_obs`."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,))
        self.action_space = gym.spaces.Box(-1, 1, (2,))
        self.left_model, self.right_model = (mujoco.MjModel.from_xml_string(PENDULUM) for _ in range(2))
        self.left, self.right = mujoco.MjData(self.left_model), mujoco.MjData(self.right_model)

    def angles(self):
        return np.array([*self.left.qpos, *self.left.qvel, *self.right.qpos, *self.right.qvel], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        for model, data in ((self.left_model, self.left), (self.right_model, self.right)):
            mujoco.mj_resetData(model, data)
            data.qpos[:] = self.np_random.uniform(-1, 1)
        self.wind = float(self.np_random.uniform(-0.1, 0.1))
        return self.angles(), {}

    def step(self, action):
        self.left.ctrl[:], self.right.ctrl[:] = action[0] + self.wind, action[1]
        mujoco.mj_step(self.left_model, self.left, 5)
        mujoco.mj_step(self.right_model, self.right, 5)
        return self.angles(), 0.0, False, False, {}


class Socket:
    """Stands for what no array can hold."""

    def __init__(self) -> None:
        self.handle = memoryview(b"live")


class Adds(gym.ObservationWrapper):
    """A wrapper that shows something that it never resets."""

    def __init__(self, env):
        super().__init__(env)
        self.shown = 0.0

    def observation(self, observation):
        self.shown += 1.0
        return observation + self.shown


class Remembers(gym.Wrapper):
    """A wrapper that keeps something across episodes, and shows it to no one."""

    def __init__(self, env):
        super().__init__(env)
        self.total = 0

    def step(self, action):
        self.total += 3
        return self.env.step(action)


class Counts(gym.Wrapper):
    """A wrapper that counts the steps of all episodes together."""

    def __init__(self, env):
        super().__init__(env)
        self.steps = 0

    def step(self, action):
        self.steps += 1
        return self.env.step(action)


class World:
    """Stands for the world of another engine: it cannot be copied, and says so at length."""

    __module__ = "another_engine"

    def __deepcopy__(self, memo):
        raise TypeError("world with body " + "body, " * 2000)


class Moves(gym.Wrapper):
    """A wrapper that steps the environment inside its reset."""

    def reset(self, **kwargs):
        self.env.reset(**kwargs)
        observation, _, _, _, info = self.env.step(1)
        return observation, info


class ForgetsVelocity(MujocoCodec):
    def set_state(self, env, state, **options):
        live = np.array(env.unwrapped.data.qvel)
        return super().set_state(env, state.replace(qvel=live), **options)


class Shifts(MujocoCodec):
    """Restores a place a millimetre away, the same one every time."""

    def get_state(self, env):
        state = super().get_state(env)
        return state.replace(qpos=state.arrays["qpos"] + 1e-3)


class ForgetsGoal(GoalEnvCodec):
    def set_state(self, env, state, **options):
        live = np.array(env.unwrapped.goal)
        return super().set_state(env, state.replace(**{"attributes/goal": live}), **options)


class ContinuesTime(MujocoCodec):
    def set_state(self, env, state, **options):
        limit = env
        while not hasattr(limit, "_elapsed_steps"):
            limit = limit.env
        elapsed = limit._elapsed_steps
        start = super().set_state(env, state, **options)
        limit._elapsed_steps = elapsed
        return start


class WalkCodec(DeepcopyCodec):
    """The right one for Walk: knows its step counter."""

    def __init__(self) -> None:
        super().__init__(counters=("t",))


class OnlyHere(WalkCodec):
    """Keeps part of the state in this process."""

    kept: ClassVar[dict[str, float]] = {}

    def get_state(self, env):
        state = super().get_state(env)
        self.kept[state.sha256] = env.unwrapped.x
        return state

    def set_state(self, env, state, **options):
        start = super().set_state(env, state, **options)
        env.unwrapped.x = self.kept[state.sha256]
        return start


class OnlyThisEnv(WalkCodec):
    """Forgets an attribute that the same environment happens to keep."""

    def get_state(self, env):
        env.unwrapped.bias = getattr(env.unwrapped, "bias", 0.25)
        return super().get_state(env)

    def set_state(self, env, state, **options):
        bias = getattr(env.unwrapped, "bias", 0.0)
        observation, info = super().set_state(env, state, **options)
        env.unwrapped.x += bias - 0.25
        return observation, info


class WrongForm(WalkCodec):
    def set_state(self, env, state, **options):
        observation, info = super().set_state(env, state, **options)
        return observation[:2], info


class WrongObservation(WalkCodec):
    def set_state(self, env, state, **options):
        observation, info = super().set_state(env, state, **options)
        return observation + 1.0, info


class Base(gym.Env):
    """Nine numbers, three actions; success when they sum to eight."""

    observation_space = gym.spaces.Box(-100, 100, (9,), np.float64)
    action_space = gym.spaces.Discrete(3)

    def _done(self):
        reached = bool(self._get_obs().sum() >= 8)
        return self._get_obs(), float(reached), reached, False, {"is_success": reached}


class Board(Base):
    """A board, and a flat view of it through which the steps write."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board = np.zeros((3, 3))
        self.flat = self.board.ravel()
        self.at = 0
        return self._get_obs(), {}

    def _get_obs(self):
        return self.board.ravel().copy()

    def step(self, action):
        self.at = (self.at + int(action)) % 9
        self.flat[self.at] += 1
        return self._done()


class Robot:
    def __init__(self) -> None:
        self.x = np.zeros(9)

    def left(self) -> None:
        self.x[0] += 1

    def __right(self) -> None:
        self.x[1] += 1

    def moves(self):
        return [self.left, self.__right]


def push(robot, amount=1):
    robot.x[2] += amount


class Dispatch(Base):
    """Moves are methods of a robot: listed, partial, and the next phase's."""

    def __init__(self) -> None:
        self.robot = Robot()
        self.moves = [*self.robot.moves(), functools.partial(push, self.robot, amount=2)]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.robot.x[:] = 0
        self.trace = []
        self.phase = self._first
        return self._get_obs(), {}

    def _get_obs(self):
        return np.r_[self.robot.x[:7], len(self.trace), self.robot.x[8]]

    def _first(self):
        self.robot.x[3] += 0.01 * self.np_random.random()
        self.phase = self._second

    def _second(self):
        self.robot.x[4] += 0.01
        self.trace.append(1)
        self.phase = self._first

    def step(self, action):
        self.moves[int(action)]()
        self.phase()
        return self._done()


class Closed(Base):
    """A move that holds the robot in its closure, out of a restore's reach."""

    def __init__(self) -> None:
        robot = self.robot = Robot()
        self.moves = {"left": lambda: robot.left()}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.robot.x[:] = 0
        return self._get_obs(), {}

    def _get_obs(self):
        return self.robot.x.copy()

    def step(self, action):
        self.moves["left"]()
        return self._done()


class TearsApart(DeepcopyCodec):
    """Copies what it can and says nothing of what it cannot."""

    def get_state(self, env):
        captured = self._capture(env.unwrapped)
        arrays = {f"attributes/{name}": array for name, array in captured.arrays.items()}
        return State({"attributes": pack_json(captured.value), **arrays}, self.key, self.library)


class Rewarded(Base):
    """What a step earns depends on the step counter, which a restore starts anew; a wall after ten steps."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.count = np.zeros(9), 0
        return self._get_obs(), {}

    def _get_obs(self):
        return self.x.copy()

    def step(self, action):
        self.count += 1
        self.x[int(action)] += 0.1
        return self._get_obs(), 1 - 0.01 * self.count, False, self.count >= 40, {}


class RewardedCodec(DeepcopyCodec):
    def __init__(self) -> None:
        super().__init__(counters=("count",))


class Waits(gym.Wrapper):
    """Changes actions, and resets in the middle of an episode: what the innermost is given is another story."""

    def step(self, action):
        result = self.env.step((action + 1) % 3)
        if self.env.unwrapped.at == 4:
            self.env.reset()
        return result


class Bag(list):
    """A list with a name: more than its attributes."""
