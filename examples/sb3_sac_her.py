"""A goal environment, five levels, Stable-Baselines3 SAC with HerReplayBuffer.

    python examples/sb3_sac_her.py             # with SCOUT
    python examples/sb3_sac_her.py --plain     # the same SAC+HER from the target start

A hand must reach an object, close on it and carry it to a goal. Relabelling does not help a beginner: an object that
was never carried has only one achieved goal, the place where it lies.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import SAC, HerReplayBuffer

from scout_rl import Curriculum, rules
from scout_rl.integrations.sb3 import CurriculumCallback, evaluate, target_env, with_curriculum

HORIZON, STEP, REACH, NEAR, HAND = 25, 0.1, 0.1, 0.1, -1.5
GOALS = [0.3, 0.6]  # a context is the goal of the object, which lies at 0; the hand starts at HAND
PROGRESS = [0.0, 0.25, 0.5, 0.75, 0.9]  # level 0 is the target start, level 4 the easiest


class Carry(gym.Env):
    """One action moves the hand along a line, one closes it. A hand that closes on nothing jams."""

    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    observation_space = gym.spaces.Dict(
        observation=gym.spaces.Box(-4, 4, (4,), np.float32),
        achieved_goal=gym.spaces.Box(-4, 4, (1,), np.float32),
        desired_goal=gym.spaces.Box(-4, 4, (1,), np.float32),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        start = {"hand": HAND, "object": 0.0, "held": False, "goal": GOALS[0]} | (options or {})
        self.hand, self.object, self.held, self.goal = (start[name] for name in ("hand", "object", "held", "goal"))
        self.jammed, self.steps = False, 0
        return self.observe(), {}

    def step(self, action):
        if not self.held and not self.jammed and action[1] > 0.5:
            self.held = abs(self.hand - self.object) < REACH
            self.jammed = not self.held
        self.hand = float(np.clip(self.hand + STEP * action[0], -2, 2))
        if self.held:
            self.object = self.hand
        self.steps += 1
        observation = self.observe()
        reward = float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {}))
        return observation, reward, False, self.steps >= HORIZON, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.abs(achieved_goal - desired_goal)[..., 0] > NEAR).astype(np.float32)

    def observe(self):
        return {
            "observation": np.array([self.hand, self.object - self.hand, self.held, self.jammed], np.float32),
            "achieved_goal": np.array([self.object], np.float32),
            "desired_goal": np.array([self.goal], np.float32),
        }


def reset_to(env, context, level):
    """The reset operator: start part of the way from the hand to the object and on to the goal."""
    goal, progress = GOALS[context], PROGRESS[level]
    carried = progress * (abs(HAND) + abs(goal)) - abs(HAND)
    if carried < 0:
        return env.reset(options={"goal": goal, "hand": carried})
    position = carried * float(np.sign(goal))
    return env.reset(options={"goal": goal, "hand": position, "object": position, "held": True})


def train(timesteps: int, rule: rules.Rule, log_dir: str | None = None, seed: int = 0):
    """Return the model, the curriculum and the success of every context from the target start."""
    curriculum = Curriculum(rule, n_contexts=len(GOALS), n_levels=len(PROGRESS), seed=seed, window=4, log_dir=log_dir)
    env = with_curriculum([Carry] * 4, curriculum, reset_to, success="is_success")
    model = SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        learning_starts=8 * HORIZON,
        learning_rate=2e-3,
        batch_size=128,
        gamma=0.95,
        tau=0.02,
        ent_coef=0.05,
        train_freq=4,
        gradient_steps=4,
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    model.learn(timesteps, callback=CurriculumCallback())
    success = evaluate(model, target_env(Carry, reset_to, range(len(GOALS)), "is_success"))
    return model, curriculum, success


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small are slower on more threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--timesteps", type=int, default=10_000)
    parser.add_argument("--plain", action="store_true", help="train from the target start alone")
    parser.add_argument("--log-dir")
    args = parser.parse_args()
    _, curriculum, success = train(args.timesteps, rules.Target() if args.plain else rules.Ability(), args.log_dir)
    print(f"frontier: {None if curriculum.frontier is None else curriculum.frontier.tolist()}")
    print(f"solved from the target start: {sum(success.values())} of {len(GOALS)} contexts")
