"""SAC+HER as a plain torch loop, as in single-file implementations."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


class TorchSAC:
    """Two critics, an actor, a tuned temperature, and whole episodes in NumPy arrays to draw from."""

    def __init__(self, episodes: Any, hidden: int, batch: int, her: int) -> None:
        import torch
        from torch import nn

        torch.manual_seed(0)
        self.torch, self.episodes, self.batch, self.her = torch, episodes, batch, her
        self.rng = np.random.default_rng(0)
        n_inputs = episodes.observation.shape[-1] + episodes.goal.shape[-1]
        self.n_actions = episodes.action.shape[-1]

        def network(n_in: int, n_out: int) -> Any:
            return nn.Sequential(
                nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_out)
            )

        self.actor = network(n_inputs, 2 * self.n_actions)
        self.critics = [network(n_inputs + self.n_actions, 1) for _ in range(2)]
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.actor_optimiser = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critics_optimiser = torch.optim.Adam([p for c in self.critics for p in c.parameters()], lr=3e-4)
        self.alpha_optimiser = torch.optim.Adam([self.log_alpha], lr=3e-4)

    def sample(self) -> tuple[Any, ...]:
        """A relabelled minibatch: observation before and after, action, reward."""
        e, rng, n = self.episodes, self.rng, self.batch
        horizon = e.action.shape[1]
        episode, step = rng.integers(len(e.goal), size=n), rng.integers(horizon, size=n)
        future = rng.integers(step + 1, horizon + 1)
        relabelled = rng.random(n) < self.her / (self.her + 1)
        goal = np.where(relabelled[:, None], e.achieved[episode, future], e.goal[episode])
        distance = np.linalg.norm(e.achieved[episode, step + 1] - goal, axis=-1)
        reward = -(distance > e.radius[episode]).astype(np.float32)
        before = np.concatenate([e.observation[episode, step], goal], axis=-1)
        after = np.concatenate([e.observation[episode, step + 1], goal], axis=-1)
        return tuple(map(self.torch.from_numpy, (before, after, e.action[episode, step], reward)))

    def act(self, observation: Any) -> tuple[Any, Any]:
        torch = self.torch
        mean, raw = self.actor(observation).chunk(2, dim=-1)
        log_deviation = -5 + 3.5 * (torch.tanh(raw) + 1)
        gaussian = torch.distributions.Normal(mean, log_deviation.exp())
        before = gaussian.rsample()
        action = torch.tanh(before)
        return action, (gaussian.log_prob(before) - torch.log(1 - action**2 + 1e-6)).sum(-1)

    def step(self) -> None:
        """One gradient step of critics, actor and temperature."""
        torch = self.torch
        before, after, action, reward = self.sample()
        with torch.no_grad():
            next_action, log_probability = self.act(after)
            rows = torch.cat([after, next_action], dim=-1)
            least = torch.minimum(*(target(rows)[:, 0] for target in self.targets))
            target_value = reward + 0.98 * (least - self.log_alpha.exp() * log_probability)
        rows = torch.cat([before, action], dim=-1)
        loss = sum(torch.nn.functional.mse_loss(critic(rows)[:, 0], target_value) for critic in self.critics)
        self._descend(self.critics_optimiser, loss)

        new_action, log_probability = self.act(before)
        rows = torch.cat([before, new_action], dim=-1)
        least = torch.minimum(*(critic(rows)[:, 0] for critic in self.critics))
        self._descend(self.actor_optimiser, (self.log_alpha.exp().detach() * log_probability - least).mean())
        entropy_gap = (log_probability.detach() - self.n_actions).mean()
        self._descend(self.alpha_optimiser, -self.log_alpha.exp() * entropy_gap)

        with torch.no_grad():
            for critic, target in zip(self.critics, self.targets, strict=True):
                for fast, slow in zip(critic.parameters(), target.parameters(), strict=True):
                    slow.lerp_(fast, 0.005)

    def _descend(self, optimiser: Any, loss: Any) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
