"""SCOUT in a torch simulator of many environments that end at different times. Comments mark the lines that SCOUT adds.

    python examples/device_torch.py                # with SCOUT
    python examples/device_torch.py --plain        # from the target start alone

The environments are ridges (examples/sb3_ppo.py has the story), stepped as one batch on the device; the learner is a
small actor-critic with a table. Nothing in the loop waits for the device.
"""

from __future__ import annotations

import argparse

import torch

from scout_rl import Curriculum, rules
from scout_rl.integrations.device import TorchCurriculum

CONTEXTS, LENGTH, DIRECTIONS, LEVELS = 20, 12, 3, 5
PROGRESS = (0.0, 0.25, 0.5, 0.75, 0.9)  # level 0 is the target start, level 4 the easiest
DISCOUNT, STEPS, WINDOW = 0.97, 16, 1024


class Ridges:
    """``n`` ridges. A wrong step ends an episode; the far end is a success. A finished one waits for its next start."""

    def __init__(self, n: int, device: str):
        path = torch.randint(DIRECTIONS, (CONTEXTS, LENGTH), generator=torch.Generator().manual_seed(0))
        self.path, self.starts = path.to(device), (torch.tensor(PROGRESS) * LENGTH).long().to(device)
        self.context = self.position = torch.zeros(n, dtype=torch.long, device=device)

    def reset(self, done, context, level):
        """Start again where ``done``."""
        self.context = torch.where(done, context.long(), self.context)
        self.position = torch.where(done, self.starts[level.long()], self.position)

    def step(self, action):
        safe = action == self.path[self.context, self.position]
        success = safe & (self.position == LENGTH - 1)
        self.position = torch.where(safe & ~success, self.position + 1, self.position)
        return success.float(), success | ~safe, success

    def observe(self):
        return self.context * LENGTH + self.position


def train(updates, n=256, plain=False, device="cpu", seed=0, log_dir=None):
    """Return the records' curriculum and the success of every context from the target start."""
    torch.manual_seed(seed)
    envs, everybody = Ridges(n, device), torch.ones(n, dtype=torch.bool, device=device)
    policy = torch.nn.Embedding(CONTEXTS * LENGTH, DIRECTIONS + 1, device=device)  # logits, and the value
    torch.nn.init.zeros_(policy.weight)
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.1)
    rule = rules.Target() if plain else rules.Ability()
    # In 4 calls 256 environments end at most 1,024 episodes: one window.
    sizes = {"environments": n, "longest": LENGTH, "window": WINDOW, "close_every": 4}
    curriculum = TorchCurriculum(rule, CONTEXTS, LEVELS, device=device, seed=seed, **sizes)  # SCOUT: where to start
    records = Curriculum(rule, CONTEXTS, LEVELS, window=WINDOW, seed=seed, log_dir=log_dir)  # SCOUT: on the host
    envs.reset(everybody, *curriculum.cells)
    for update in range(updates):
        chosen, values, rewards, ends, entropy = [], [], [], [], 0.0
        for _ in range(STEPS):
            answer = policy(envs.observe())
            chance = torch.distributions.Categorical(logits=answer[:, :-1], validate_args=False)
            action = chance.sample()
            reward, done, success = envs.step(action)
            cells = curriculum.step(done, success)  # SCOUT: outcomes in, next cells out
            envs.reset(done, *cells)
            chosen.append(chance.log_prob(action))
            values.append(answer[:, -1])
            rewards.append(reward)
            ends.append(done.float())
            entropy = entropy + chance.entropy().mean() / STEPS
        future, loss = policy(envs.observe())[:, -1].detach(), -0.01 * entropy
        for t in reversed(range(STEPS)):
            future = rewards[t] + DISCOUNT * (1 - ends[t]) * future
            advantage = future - values[t]
            loss = loss + (advantage.square() / 2 - chosen[t] * advantage.detach()).mean() / STEPS
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if update % 15 == 14:
            curriculum.drain(records)  # SCOUT: records for the picture; this waits for the device
    curriculum.drain(records)
    return records, evaluate(policy, device)


@torch.no_grad()
def evaluate(policy, device, episodes=20):
    """The success of every context from the target start, with sampled actions."""
    context = torch.arange(CONTEXTS, device=device).repeat(episodes)
    envs, running = Ridges(len(context), device), torch.ones(len(context), dtype=torch.bool, device=device)
    envs.reset(running, context, torch.zeros_like(context))
    won = torch.zeros_like(running)
    for _ in range(LENGTH):
        action = torch.distributions.Categorical(logits=policy(envs.observe())[:, :-1]).sample()
        _, done, success = envs.step(action)
        won, running = won | (success & running), running & ~done
    return won.float().reshape(episodes, CONTEXTS).mean(0).cpu()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--log-dir")
    arguments = parser.parse_args()
    options = {"plain": arguments.plain, "device": arguments.device, "log_dir": arguments.log_dir}
    records, success = train(arguments.updates, **options)
    print(records)
    print(f"success from the target start: {success.mean():.2f}, worst context {success.min():.2f}")
