"""SAC+HER of Stable-Baselines3 (torch) and of SBX (the same in JAX), at the sizes of our measurements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from scout_rl.bench.hardware import n_usable_cores

OBSERVATION, GOAL, ACTION, HORIZON = 25, 3, 4, 50
"""Fetch's."""
HIDDEN, BATCH, HER, RADIUS = 256, 256, 4, 0.05
N_ENVS = 16


class Noise(gymnasium.Env):  # type: ignore[misc]
    """Random observations of Fetch's shapes, to fill a replay fast. Peers call its ``compute_reward``."""

    def __init__(self) -> None:
        self.rng, self.t = np.random.default_rng(0), 0
        sizes = {"observation": OBSERVATION, "achieved_goal": GOAL, "desired_goal": GOAL}
        self.observation_space = gymnasium.spaces.Dict(
            {name: gymnasium.spaces.Box(-np.inf, np.inf, (n,), np.float32) for name, n in sizes.items()}
        )
        self.action_space = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)

    def draw_observation(self) -> dict[str, Any]:
        return {
            name: self.rng.standard_normal(space.shape).astype(np.float32)
            for name, space in self.observation_space.items()
        }

    def reset(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.t = 0
        return self.draw_observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.t += 1
        return self.draw_observation(), -1.0, False, self.t == HORIZON, {}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved - desired, axis=-1) > RADIUS).astype(np.float32)


def fetch() -> Any:
    """The stock environment, in a process of its own."""
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make("FetchPickAndPlace-v4")


def peer(library: str, make_env: Callable[[], Any], *, subprocesses: bool, updates: int) -> Any:
    """Their model with 16 environments; ``updates`` gradient steps after one episode of each."""
    from stable_baselines3 import HerReplayBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    if library == "sbx":
        from sbx import SAC
    else:
        from stable_baselines3 import SAC
    vector = SubprocVecEnv if subprocesses else DummyVecEnv
    return SAC(
        "MultiInputPolicy",
        vector([make_env] * N_ENVS),
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": HER, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
        batch_size=BATCH,
        buffer_size=400_000,
        learning_starts=N_ENVS * HORIZON,
        train_freq=(HORIZON, "step"),
        gradient_steps=updates,
        device="cpu",
        seed=0,
    )


def choose_threads(work: Callable[[], Any]) -> None:
    """Give torch all usable cores or one, whichever does ``work`` faster here."""
    import torch

    taken = {}
    for n in (1, n_usable_cores()):
        torch.set_num_threads(n)
        work()
        begin = time.perf_counter()
        work()
        taken[n] = time.perf_counter() - begin
    torch.set_num_threads(min(taken, key=taken.__getitem__))


def play(model: Any, windows: int) -> None:
    """Per window: one episode of each environment, and the gradient steps."""
    model.learn(windows * N_ENVS * HORIZON, reset_num_timesteps=False)
