"""One training window as CleanRL writes it: a torch policy on stock vector environments, then PPO."""

from __future__ import annotations

from typing import Any

import numpy as np


class TorchWindow:
    """A fresh policy with the paper's encoder and constants; ``run`` plays the episodes and updates once."""

    def __init__(self, task: str, n_envs: int, seed: int) -> None:
        import gymnasium
        import minigrid  # noqa: F401  (registers the environments)
        import torch
        from torch import nn

        def layer(module: Any, gain: float = 2**0.5) -> Any:
            nn.init.orthogonal_(module.weight, gain)
            nn.init.zeros_(module.bias)
            return module

        torch.manual_seed(seed)
        self.torch, self.n_envs, self.steps = torch, n_envs, 0
        self.envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(task)] * n_envs)
        self.horizon = gymnasium.make(task).unwrapped.max_steps
        self.encoder = nn.Sequential(
            layer(nn.Conv2d(3, 16, 2)), nn.Tanh(), layer(nn.Conv2d(16, 32, 2)), nn.Tanh(), nn.Flatten(),
            layer(nn.Linear(800, 128)), nn.Tanh(), layer(nn.Linear(128, 128)), nn.Tanh(),
        )  # fmt: skip
        self.actor, self.critic = layer(nn.Linear(128, 7), 0.01), layer(nn.Linear(128, 1), 1.0)
        self.parameters = [p for m in (self.encoder, self.actor, self.critic) for p in m.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=2.5e-4, eps=1e-5)

    def policy(self, view: Any) -> tuple[Any, Any]:
        features = self.encoder(view.permute(0, 3, 1, 2))
        return self.torch.distributions.Categorical(logits=self.actor(features)), self.critic(features)[:, 0]

    def run(self) -> None:
        """One episode of each environment (what comes after a restart is not kept), then the update."""
        torch = self.torch
        observation, _ = self.envs.reset(seed=0)
        alive, kept = np.ones(self.n_envs, dtype=bool), []
        for _ in range(self.horizon):
            view = torch.as_tensor(observation["image"], dtype=torch.float32)
            with torch.no_grad():
                distribution, value = self.policy(view)
                action = distribution.sample()
                log_probability = distribution.log_prob(action)
            observation, reward, terminated, truncated, _ = self.envs.step(action.numpy())
            success = torch.as_tensor(terminated & (reward > 0))
            kept.append((view, action, log_probability, value, success, torch.as_tensor(alive.copy())))
            alive &= ~(terminated | truncated)
            if not alive.any():
                break
        view, action, log_probability, value, success, valid = (torch.stack(field) for field in zip(*kept, strict=True))
        advantage = self.advantages(value, success)
        flat = (view, action, log_probability, advantage, advantage + value)
        self.steps = int(valid.sum())
        self.update(*(field.flatten(0, 1)[valid.flatten()] for field in flat))

    def advantages(self, value: Any, success: Any) -> Any:
        torch = self.torch
        advantage, last = torch.zeros_like(value), torch.zeros(self.n_envs)
        for t in reversed(range(len(value))):
            next_value = value[t + 1] if t + 1 < len(value) else torch.zeros(self.n_envs)
            continues = 1.0 - success[t].float()
            delta = success[t].float() + 0.99 * next_value * continues - value[t]
            last = advantage[t] = delta + 0.99 * 0.95 * continues * last
        return advantage

    def update(self, view: Any, action: Any, old: Any, advantage: Any, target: Any) -> None:
        torch = self.torch
        for _ in range(4):
            for rows in torch.randperm(len(view)).split(1024):
                distribution, value = self.policy(view[rows])
                ratio = (distribution.log_prob(action[rows]) - old[rows]).exp()
                a = advantage[rows]
                a = (a - a.mean()) / (a.std() + 1e-8)
                loss = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
                loss = loss + 0.5 * 0.5 * ((value - target[rows]) ** 2).mean() - 0.01 * distribution.entropy().mean()
                self.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.parameters, 0.5)
                self.optimizer.step()
