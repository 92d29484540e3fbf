"""A small training with a curriculum of starts. Run it, then put your own environment in the place of the lock.

    python FILE

A lock opens after ten right digits in a row; a wrong one ends the episode. Only the open lock is rewarded. A beginner
guesses right once in 4 ** 10 = 1,048,576 tries and never sees that reward. SCOUT begins episodes with digits already
entered, and takes that help away as the agent learns.
"""

import argparse
from itertools import count
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO

from scout_rl import Curriculum, rules
from scout_rl.integrations.sb3 import CurriculumCallback, evaluate, target_env, with_curriculum

LOCKS, DIGITS, LENGTH = 4, 4, 10
"""Four locks: four contexts, each with a code of its own and a pace of its own."""
ENTERED = [0, 3, 6, 8, 9]
"""Digits already entered, by level. Level 0 is the target start, the one that counts; the last is the easiest."""


class Lock(gym.Env):
    """Your environment. All that it needs is a ``reset`` that can begin somewhere else."""

    action_space = gym.spaces.Discrete(DIGITS)
    observation_space = gym.spaces.Box(0, 1, (LOCKS * LENGTH,), np.float32)
    codes = np.random.default_rng(0).integers(DIGITS, size=(LOCKS, LENGTH))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        start = {"lock": 0, "entered": 0} | (options or {})
        self.lock, self.entered = start["lock"], start["entered"]
        return self.observe(), {}

    def step(self, action):
        right = bool(action == self.codes[self.lock, self.entered])
        self.entered += right
        success = self.entered == LENGTH
        return self.observe(), float(success), success or not right, False, {"is_success": success}

    def observe(self):
        """Which lock, and how many digits are entered; not the code."""
        observation = np.zeros(LOCKS * LENGTH, np.float32)
        observation[self.lock * LENGTH + min(self.entered, LENGTH - 1)] = 1
        return observation


def reset_to(env, context, level):
    """Begin an episode of a context at a level. SCOUT has to know nothing else about your environment."""
    return env.reset(options={"lock": context, "entered": ENTERED[level]})


def train(rule, log_dir, steps):
    """PPO as you know it: the curriculum stands around the environments. Returns how many locks it opens."""
    curriculum = Curriculum(rule, n_contexts=LOCKS, n_levels=len(ENTERED), log_dir=log_dir)
    env = with_curriculum([Lock] * 8, curriculum, reset_to, success="is_success")
    constants = {"n_steps": 64, "batch_size": 128, "n_epochs": 5, "learning_rate": 2e-3, "ent_coef": 0.02}
    model = PPO("MlpPolicy", env, seed=0, device="cpu", **constants)
    model.learn(steps, callback=CurriculumCallback())
    success = evaluate(model, target_env(Lock, reset_to, range(LOCKS), "is_success"))  # level 0 alone
    return f"{sum(success.values())} of {LOCKS} locks opened from the target start"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40_000, help="environment steps of each training")
    parser.add_argument("--out", type=Path, default="runs", help="folder of the records")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # networks this small are slower on more threads
    runs = next(folder for n in count(1) if not (folder := chosen.out / f"lock-{n}").exists())  # a new one each time
    print("plain training:   ", train(rules.Target(), runs / "plain", chosen.steps), flush=True)
    print("with a curriculum:", train(rules.Ability(), runs / "ability", chosen.steps), flush=True)
    print(f"next: scout picture {runs}, then scout diagnose {runs / 'ability'}")
