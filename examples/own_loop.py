"""SCOUT in your own training loop: a single file, torch, no wrapper. Comments mark the lines that SCOUT adds.

    python examples/own_loop.py                # with SCOUT
    python examples/own_loop.py --plain        # from the target start alone

The environment is a batch of ridges (examples/sb3_ppo.py has the story); the learner is a small PPO.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn

from scout_rl import Curriculum, rules

CONTEXTS, LENGTH, DIRECTIONS = 4, 12, 3
PROGRESS = np.array([0.0, 0.25, 0.5, 0.75, 0.9])  # level 0 is the target start, level 4 the easiest


class Ridges:
    """``n`` ridges stepped as one batch. A wrong step ends an episode; the far end is a success."""

    def __init__(self, n: int):
        self.path = np.random.default_rng(0).integers(DIRECTIONS, size=(CONTEXTS, LENGTH))
        self.n = n

    def reset(self, context, position):
        self.context, self.position = np.array(context), np.array(position)
        return self.observe()

    def step(self, action):
        safe = action == self.path[self.context, np.minimum(self.position, LENGTH - 1)]
        self.position = self.position + safe
        success = self.position >= LENGTH
        return self.observe(), success.astype(np.float32), success | ~safe, success

    def observe(self):
        index = self.context * LENGTH + np.minimum(self.position, LENGTH - 1)
        return torch.eye(CONTEXTS * LENGTH)[torch.as_tensor(index)]


def rollout(envs, observation, policy, value, generator):
    """Play every environment to its end; return the batch of steps, and which environments succeeded."""
    running, succeeded, steps = np.ones(envs.n, bool), np.zeros(envs.n, bool), []
    while running.any():
        with torch.no_grad():
            logits = torch.log_softmax(policy(observation), -1)
            action = torch.multinomial(logits.exp(), 1, generator=generator)[:, 0]
            log_prob = logits.gather(1, action[:, None])[:, 0]
            baseline = value(observation)[:, 0]
        next_observation, reward, done, success = envs.step(action.numpy())
        steps.append((observation, action, log_prob, baseline, torch.as_tensor(reward), torch.as_tensor(running)))
        succeeded |= success & running
        running = running & ~done
        observation = next_observation
    observations, actions, log_probs, baselines, rewards, alive = (
        torch.stack(column) for column in zip(*steps, strict=True)
    )
    returns = (rewards * alive).flip(0).cumsum(0).flip(0)
    kept = [t[alive] for t in (observations, actions, log_probs, returns - baselines, returns)]
    return kept, succeeded


def update(batch, policy, value, optimizer, epochs=4):
    observations, actions, log_probs, advantages, returns = batch
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
    for _ in range(epochs):
        logits = torch.log_softmax(policy(observations), -1)
        ratio = (logits.gather(1, actions[:, None])[:, 0] - log_probs).exp()
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        entropy = -(logits.exp() * logits).sum(-1).mean()
        loss = -surrogate - 0.05 * entropy + 0.5 * (value(observations)[:, 0] - returns).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train(windows: int, rule: rules.Rule, log_dir: str | None = None, seed: int = 0, n: int = 64):
    """Return the curriculum and the success of every context from the target start."""
    generator = torch.Generator().manual_seed(seed)
    policy = nn.Sequential(nn.Linear(CONTEXTS * LENGTH, 64), nn.Tanh(), nn.Linear(64, DIRECTIONS))
    value = nn.Sequential(nn.Linear(CONTEXTS * LENGTH, 64), nn.Tanh(), nn.Linear(64, 1))
    for parameter in [*policy.parameters(), *value.parameters()]:
        nn.init.normal_(parameter, std=0.1, generator=generator)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-3)
    envs = Ridges(n)

    # SCOUT: the rule that picks cells, and the folder for its records (`scout picture LOG_DIR` draws them)
    curriculum = Curriculum(rule, CONTEXTS, len(PROGRESS), seed=seed, window=n, log_dir=log_dir)
    for _ in range(windows):
        cells = curriculum.assign(envs.n)  # SCOUT: a cell (context, level) for every environment
        start = (PROGRESS[cells.level] * LENGTH).astype(int)  # SCOUT: your reset operator
        observation = envs.reset(cells.context, start)
        batch, success = rollout(envs, observation, policy, value, generator)
        update(batch, policy, value, optimizer)
        curriculum.report(cells, success)  # SCOUT: closes the window; frontiers move here

    evaluation = Ridges(CONTEXTS)
    target = evaluation.reset(np.arange(CONTEXTS), np.zeros(CONTEXTS, int))  # level 0 only
    return curriculum, rollout(evaluation, target, lambda x: 100 * policy(x), value, generator)[1]


if __name__ == "__main__":
    torch.set_num_threads(1)  # networks this small are slower on more threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=400)
    parser.add_argument("--plain", action="store_true", help="train from the target start alone")
    parser.add_argument("--log-dir")
    args = parser.parse_args()
    curriculum, success = train(args.windows, rules.Target() if args.plain else rules.Ability(), args.log_dir)
    print(f"frontier: {None if curriculum.frontier is None else curriculum.frontier.tolist()}")
    print(f"solved from the target start: {success.sum()} of {CONTEXTS} contexts")
