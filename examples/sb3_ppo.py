"""Your own environment, five levels, Stable-Baselines3 PPO.

    python examples/sb3_ppo.py                 # with SCOUT: solves it
    python examples/sb3_ppo.py --plain         # the same PPO from the target start: never sees a reward

A ridge is a narrow path: at every position one of three directions is safe, and a wrong one ends the episode. Reward
comes only at the far end, so from the start (level 0) a beginner succeeds once in 3 ** 12 episodes.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO

from scout_rl import Curriculum, rules
from scout_rl.integrations.sb3 import CurriculumCallback, evaluate, target_env, with_curriculum

CONTEXTS, LENGTH, DIRECTIONS = 4, 12, 3
PROGRESS = [0.0, 0.25, 0.5, 0.75, 0.9]  # level 0 is the target start, level 4 the easiest


class Ridge(gym.Env):
    """A context is one winding path; a level is how far along it the episode starts."""

    action_space = gym.spaces.Discrete(DIRECTIONS)
    observation_space = gym.spaces.Box(0, 1, (CONTEXTS * LENGTH,), np.float32)

    def __init__(self):
        self.path = np.random.default_rng(0).integers(DIRECTIONS, size=(CONTEXTS, LENGTH))
        self.context = self.position = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        options = options or {}
        self.context, self.position = options.get("context", 0), options.get("position", 0)
        return self.observe(), {}

    def step(self, action):
        safe = action == self.path[self.context, self.position]
        self.position += int(safe)
        success = self.position == LENGTH
        return self.observe(), float(success), success or not safe, False, {"is_success": success}

    def observe(self):
        observation = np.zeros(CONTEXTS * LENGTH, np.float32)
        observation[self.context * LENGTH + min(self.position, LENGTH - 1)] = 1
        return observation


def reset_to(env, context, level):
    """The reset operator: start an episode of this context at this level."""
    return env.reset(options={"context": context, "position": int(PROGRESS[level] * LENGTH)})


def train(timesteps: int, rule: rules.Rule, log_dir: str | None = None, seed: int = 0):
    """Return the model, the curriculum and the success of every context from the target start."""
    curriculum = Curriculum(rule, n_contexts=CONTEXTS, n_levels=len(PROGRESS), seed=seed, log_dir=log_dir)
    env = with_curriculum([Ridge] * 8, curriculum, reset_to, success="is_success")
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=64,
        batch_size=128,
        n_epochs=5,
        learning_rate=1e-3,
        ent_coef=0.02,
        seed=seed,
        device="cpu",
    )
    model.learn(timesteps, callback=CurriculumCallback())
    success = evaluate(model, target_env(Ridge, reset_to, range(CONTEXTS), "is_success"))
    return model, curriculum, success


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small are slower on more threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--timesteps", type=int, default=40_000)
    parser.add_argument("--plain", action="store_true", help="train from the target start alone")
    parser.add_argument("--log-dir")
    args = parser.parse_args()
    _, curriculum, success = train(args.timesteps, rules.Target() if args.plain else rules.Ability(), args.log_dir)
    print(f"frontier: {None if curriculum.frontier is None else curriculum.frontier.tolist()}")
    print(f"solved from the target start: {sum(success.values())} of {CONTEXTS} contexts")
