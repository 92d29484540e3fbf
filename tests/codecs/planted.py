"""Environments, wrappers and codecs with a known answer: some right, some with one planted fault."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.codecs.goal_env import GoalEnvCodec
from scout_rl.codecs.mujoco import MujocoCodec


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
