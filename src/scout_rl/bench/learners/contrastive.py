"""Contrastive RL: a critic that predicts the goal that a state and action lead to, with SAC's actor and entropy.

The critic is minus the distance of two representations, of (observation, action) and of a goal. It learns with InfoNCE:
each row has to pick, among the goals of the minibatch, the one that its own episode achieved later. It uses no reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from scout_rl.bench.learners.episodes import Array, GoalEpisodes, GoalSpace
from scout_rl.bench.learners.networks import MLP
from scout_rl.bench.learners.off_policy import Learned, Loss, OffPolicy
from scout_rl.bench.learners.replay import Transitions
from scout_rl.files.refusal import Refusal


class Pair(NamedTuple):
    """The two encoders."""

    action: MLP
    """Encodes observation and action."""
    goal: MLP


@dataclass(frozen=True, kw_only=True)
class Contrastive(OffPolicy):
    """The paper's constants; hashable."""

    representation: int = 64
    """Numbers in the representation of an action or a goal."""
    penalty: float = 0.1
    """Weight of the squared logsumexp, which keeps the logits from drifting away."""
    energy: Literal["distance", "product"] = "distance"
    """Logit of a pair: minus the Euclidean distance of the representations, or their inner product."""

    def init_critic(self, key: Array, space: GoalSpace) -> tuple[Pair, None]:
        """Two encoders; no slow copy."""
        keys = jax.random.split(key)
        tail = (*self.hidden, self.representation)
        return Pair(MLP((space.observation + space.action, *tail), keys[0]), MLP((space.goal, *tail), keys[1])), None

    def encode(
        self, learned: Learned, pair: Pair, observation: Array, action: Array, goal: Array
    ) -> tuple[Array, Array]:
        """Representations [B, r] of (observation, action) and of goals."""
        observation, goal = self.network_inputs(learned.inputs, observation, goal)
        return pair.action(jnp.concatenate([observation, action], axis=-1)), pair.goal(goal)

    def logits(self, left: Array, right: Array) -> Array:
        """[..., B]: logits of representations that broadcast against each other."""
        if self.energy == "product":
            return (left * right).sum(-1)
        return -jnp.sqrt(((left - right) ** 2).sum(-1) + 1e-8)

    def critic_loss(self, learned: Learned, critic: Pair, batch: Transitions, key: Array) -> Loss:
        """InfoNCE with the minibatch's other goals as negatives, and the logsumexp penalty."""
        left, right = self.encode(learned, critic, batch.observation, batch.action, batch.hindsight)
        return self.info_nce(self.logits(left[:, None], right[None]))

    def info_nce(self, logits: Array) -> Loss:
        """The loss of logits [B, B] with the positives on the diagonal."""
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
        """Refused: this critic has no TD error."""
        raise Refusal("the contrastive learner has no TD error: choose a rule that needs no learner signal")
