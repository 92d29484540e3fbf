"""Contrastive RL: a critic that tells which goal a state and action lead to, and SAC's actor and entropy on top.

The critic is minus the distance of two representations, of (observation, action) and of a goal. It learns with InfoNCE:
among the goals of a minibatch, each row has to find the one that its own episode achieved later. No reward is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from scout_rl.bench.learners.episodes import GoalEpisodes, GoalSpace
from scout_rl.bench.learners.networks import MLP
from scout_rl.bench.learners.off_policy import Learned, Loss, OffPolicy
from scout_rl.bench.learners.replay import Transitions

Array = Any


class Pair(NamedTuple):
    """The two encoders."""

    action: MLP
    """Of observation and action."""
    goal: MLP


@dataclass(frozen=True, kw_only=True)
class Contrastive(OffPolicy):
    """The paper's constants; hashable."""

    representation: int = 64
    penalty: float = 0.1
    """Weight of the squared logsumexp, which keeps the logits from drifting."""
    energy: Literal["distance", "product"] = "distance"
    """Logit of a pair: minus the Euclidean distance of the representations, or their inner product."""

    def init_critic(self, key: Array, space: GoalSpace) -> tuple[Pair, None]:
        """Two encoders; no slow copy."""
        of_action, of_goal = jax.random.split(key)
        tail = (*self.hidden, self.representation)
        return Pair(MLP((space.observation + space.action, *tail), of_action), MLP((space.goal, *tail), of_goal)), None

    def encode(
        self, learned: Learned, pair: Pair, observation: Array, action: Array, goal: Array
    ) -> tuple[Array, Array]:
        """Representations [B, r] of (observation, action) and of goals."""
        seen, wanted = self.seen(learned.inputs, observation, goal)
        return pair.action(jnp.concatenate([seen, action], axis=-1)), pair.goal(wanted)

    def logits(self, left: Array, right: Array) -> Array:
        """[..., B]: of representations that broadcast against each other."""
        if self.energy == "product":
            return (left * right).sum(-1)
        return -jnp.sqrt(((left - right) ** 2).sum(-1) + 1e-8)

    def critic_loss(self, learned: Learned, critic: Pair, batch: Transitions, key: Array) -> Loss:
        """InfoNCE with the minibatch's other goals as negatives, and the logsumexp penalty."""
        left, right = self.encode(learned, critic, batch.observation, batch.action, batch.hindsight)
        return self.info_nce(self.logits(left[:, None], right[None]))

    def info_nce(self, logits: Array) -> Loss:
        """Of logits [B, B], the positives on the diagonal."""
        total = jax.nn.logsumexp(logits, axis=1)
        cross_entropy = (total - jnp.diagonal(logits)).mean()
        loss = cross_entropy + self.penalty * (total**2).mean()
        right = (logits.argmax(1) == jnp.arange(len(logits))).mean()
        return loss, {"critic_loss": loss, "cross_entropy": cross_entropy, "found": right}

    def value(self, learned: Learned, observation: Array, action: Array, goal: Array) -> Array:
        """The pair's logit."""
        return self.logits(*self.encode(learned, learned.critic, observation, action, goal))

    def follow(self, critic: Pair, target: None) -> None:
        """There is no slow copy."""
        return None

    def signals(self, learned: Learned, episodes: GoalEpisodes, key: Array) -> Array:
        """Refuse: there is no value to be wrong about."""
        raise ValueError("the contrastive learner has no TD error: choose a rule that needs no learner signal")
