"""Soft actor-critic with hindsight relabelling: the paper's learner for mazes and manipulation.

It differs from CleanRL's ``sac_continuous_action.py`` as the setting or the paper asks:

- Goal-conditioned minibatches from whole episodes (HER, future), reward 0 at success and -1 before. Episodes do not end
  at success and the policy does not see the time limit, so every target bootstraps.
- Inputs are normalised (statistics frozen after ``normalise_until`` windows). With raw inputs Fetch learns nothing.
- ``updates`` gradient steps per window, after its rollouts; the actor takes one step with each of the critic's.
- Options for the RFCL comparison: more critics, targets from a random subset of them, layer normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from scout_rl.bench.learners.episodes import Array, GoalEpisodes, GoalSpace
from scout_rl.bench.learners.networks import MLP, ensemble
from scout_rl.bench.learners.off_policy import Learned, Loss, OffPolicy
from scout_rl.bench.learners.replay import Transitions, reward
from scout_rl.files.refusal import Refusal

SIGNAL_ROWS = 4096
"""Un-relabelled transitions per chunk of the signal's computation."""


@dataclass(frozen=True, kw_only=True)
class SAC(OffPolicy):
    """Hashable, so that it can be a static argument of ``jax.jit``."""

    tau: float = 0.005
    """Rate at which the target critics follow."""
    critics: int = 2
    """Critics that are trained."""
    subset: int = 2
    """Critics drawn at each step; their minimum is the target. If fewer than all, the actor follows the mean of all."""
    layer_norm: bool = False
    """Layer normalisation in the critics."""
    clip_targets: bool = False
    """Clip targets to -1 / (1 - gamma), the value of never succeeding, and 0, the value of lasting success."""

    def __post_init__(self) -> None:
        if self.clip_targets and self.gamma == 1:
            raise Refusal("clip_targets needs a gamma below 1: without a discount no value is the least")
        if not 1 <= self.subset <= self.critics:
            raise Refusal(f"subset is {self.subset}, but must be from 1 to critics, which is {self.critics}")

    def init_critic(self, key: Array, space: GoalSpace) -> tuple[MLP, MLP]:
        """Stacked critics, and target critics equal to them."""
        sizes = (space.observation + space.goal + space.action, *self.hidden, 1)
        critic = ensemble(self.critics, sizes, key, self.layer_norm)
        return critic, jax.tree.map(jnp.copy, critic)

    def values(self, learned: Learned, critic: MLP, observation: Array, action: Array, goal: Array) -> Array:
        """[critics, B]."""
        rows = jnp.concatenate([*self.network_inputs(learned.inputs, observation, goal), action], axis=-1)
        rows = jnp.broadcast_to(rows, (*critic.layers[0].bias.shape[:1], *rows.shape))  # else XLA transposes weights
        return jax.vmap(lambda network, rows: network(rows)[..., 0])(critic, rows)

    def targets(self, learned: Learned, batch: Transitions, key: Array) -> Array:
        """r + gamma * (min Q' - alpha * log pi), with the next action drawn from the policy."""
        action_key, subset_key = jax.random.split(key)
        policy = self.distribution(learned.actor, learned.inputs, batch.next_observation, batch.goal)
        action, log_probability = policy.sample(jax.random.normal(action_key, batch.action.shape))
        slow = learned.target
        if self.subset < self.critics:
            members = jax.random.choice(subset_key, self.critics, (self.subset,), replace=False)
            slow = jax.tree.map(lambda a: a[members], slow)
        least = self.values(learned, slow, batch.next_observation, action, batch.goal).min(0)
        target = batch.reward + self.gamma * (least - jnp.exp(learned.log_alpha) * log_probability)
        return jnp.clip(target, -1.0 / (1.0 - self.gamma), 0.0) if self.clip_targets else target

    def critic_loss(self, learned: Learned, critic: MLP, batch: Transitions, key: Array) -> Loss:
        """Mean squared distance from the targets, summed over the critics."""
        target = jax.lax.stop_gradient(self.targets(learned, batch, key))
        values = self.values(learned, critic, batch.observation, batch.action, batch.goal)
        error = ((values - target) ** 2).mean(1).sum()
        return error, {"critic_loss": error, "value": values.mean()}

    def value(self, learned: Learned, observation: Array, action: Array, goal: Array) -> Array:
        """The least of the critics, or their mean if targets take a subset."""
        values = self.values(learned, learned.critic, observation, action, goal)
        return values.mean(0) if self.subset < self.critics else values.min(0)

    def follow(self, critic: MLP, target: MLP) -> MLP:
        """A step of ``tau`` towards the critic."""
        return jax.tree.map(lambda slow, fast: slow + self.tau * (fast - slow), target, critic)  # type: ignore[no-any-return]

    def signals(self, learned: Learned, episodes: GoalEpisodes, key: Array) -> Array:
        """Mean absolute TD error under the target networks, or the mean deviation between the critics."""
        n, horizon = episodes.action.shape[:2]
        goal = jnp.broadcast_to(episodes.goal[:, None], (n, horizon, episodes.goal.shape[-1]))
        radius = jnp.broadcast_to(episodes.radius[:, None], (n, horizon))

        def one_chunk(rows: tuple[Array, ...]) -> Array:
            before, after, action, achieved, goal, radius, key = rows
            if self.signal == "disagreement":
                return self.values(learned, learned.critic, before, action, goal).std(0)
            none = jnp.zeros(len(before), jnp.int32)
            earned = reward(achieved, goal, radius)
            batch = Transitions(before, action, after, goal, goal, earned, none > 0, none, none, none)
            value = self.values(learned, learned.target, before, action, goal).min(0)
            return jnp.abs(self.targets(learned, batch, key) - value)

        rows = (
            episodes.observation[:, :-1],
            episodes.observation[:, 1:],
            episodes.action,
            episodes.achieved[:, 1:],
            goal,
            radius,
        )
        size = max(d for d in range(1, horizon + 1) if horizon % d == 0 and (n * d <= SIGNAL_ROWS or d == 1))
        chunks = horizon // size

        def shaped(a: Array) -> Array:
            return jnp.swapaxes(a.reshape(n, chunks, size, *a.shape[2:]), 0, 1).reshape(chunks, n * size, *a.shape[2:])

        signals_by_chunk = jax.lax.map(one_chunk, (*map(shaped, rows), jax.random.split(key, chunks)))
        return signals_by_chunk.reshape(chunks, n, size).mean((0, 2))
