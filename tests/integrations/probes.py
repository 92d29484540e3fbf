"""Environments whose observation tells the truth about their episode: where it started, and whether it succeeded."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np

from scout_rl import Curriculum, rules
from scout_rl.integrations.gymnasium import Assignments, CurriculumEnv

CONTEXTS, LEVELS = 6, 5


class Probe(gym.Env):
    """Ends at random, succeeds at random; the observation is [context, level, steps, succeeded so far]."""

    observation_space = gym.spaces.Box(-1, 1000, (4,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, end: float = 0.3, hit: float = 0.2, crash_at: int | None = None, die: bool = False) -> None:
        self.end, self.hit, self.crash_at, self.die = end, hit, crash_at, die
        self.lifetime = 0
        self.state = np.full(4, -1.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        self.state = np.array([options.get("context", -1), options.get("level", -1), 0, 0], np.float64)
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.lifetime += 1
        if self.lifetime == self.crash_at:
            if self.die:
                os._exit(1)
            raise ArithmeticError("the simulator diverged")
        self.state[2] += 1
        hit = self.np_random.random() < self.hit
        self.state[3] = max(self.state[3], hit)
        terminated = bool(self.np_random.random() < self.end)
        truncated = not terminated and bool(self.np_random.random() < self.end / 2)
        return self.observe(), 0.0, terminated, truncated, {"is_success": bool(hit)}

    def observe(self) -> Any:
        return self.state.copy()


class GoalProbe(Probe):
    """The same as a goal environment: dict observations."""

    observation_space = gym.spaces.Dict(
        {
            "observation": Probe.observation_space,
            "achieved_goal": gym.spaces.Box(-1, 1000, (2,), np.float64),
            "desired_goal": gym.spaces.Box(-1, 1000, (2,), np.float64),
        }
    )

    def observe(self) -> Any:
        return {
            "observation": self.state.copy(),
            "achieved_goal": self.state[:2].copy(),
            "desired_goal": np.zeros(2),
        }

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved - desired, axis=-1) > 0.5).astype(np.float64)


def reset_to(env: Any, context: int, level: int) -> tuple[Any, dict[str, Any]]:
    return env.reset(options={"context": context, "level": level})


def truth(observation: Any, index: int | None = None) -> tuple[int, int, bool]:
    """(context, level, success) of an episode, from its last observation alone."""
    state = observation["observation"] if isinstance(observation, dict) else observation
    state = state if index is None else state[index]
    return int(state[0]), int(state[1]), bool(state[3])


class Spy(Curriculum):
    """A curriculum that keeps what it assigned and what was recorded."""

    def __init__(self, seed: int = 0, window: int = 4) -> None:
        rule = rules.Scout(n_min=1, cooldown=1, tau_high=0.3)
        super().__init__(rule, CONTEXTS, LEVELS, seed=seed, window=window)
        self.assigned: list[tuple[int, int]] = []
        self.recorded: list[tuple[int, int, bool]] = []

    def assign_one(self) -> tuple[int, int]:
        cell = super().assign_one()
        self.assigned.append(cell)
        return cell

    def record(self, context: int, level: int, success: Any, signal: float | None = None) -> Any:
        self.recorded.append((context, level, bool(success)))
        return super().record(context, level, success, signal)


class MakeProbe:
    """An env_fn for vector environments."""

    def __init__(self, assignments: Assignments, kind: type[Probe] = Probe, **kwargs: Any) -> None:
        self.assignments, self.kind, self.kwargs = assignments, kind, kwargs

    def __call__(self) -> CurriculumEnv:
        return CurriculumEnv(self.kind(**self.kwargs), self.assignments, reset_to, success="is_success")
