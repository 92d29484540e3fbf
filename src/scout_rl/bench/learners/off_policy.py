"""What SAC and contrastive RL share: actor, exploration, entropy, inputs, replay, and the window's gradient steps.

These learners see goal-conditioned episodes. Their state is what is learned and the replay. ``update`` adds a window's
episodes and takes its gradient steps in one compiled call. Subclasses define the critic.

The policy's input is a row: observation and goal side by side, float32[B, n + k].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from scout_rl.bench.learners import normaliser, replay
from scout_rl.bench.learners.episodes import Array, GoalEpisodes, GoalSpace, PyTree
from scout_rl.bench.learners.learner import State, Update
from scout_rl.bench.learners.networks import MLP
from scout_rl.bench.learners.normaliser import Normaliser
from scout_rl.bench.learners.replay import Transitions
from scout_rl.bench.learners.squashed import Squashed, squashed

Loss = tuple[Array, dict[str, Array]]
"""A loss, and numbers for the records."""
UNROLL = 4
"""Gradient steps compiled into one turn of the loop."""


class Inputs(NamedTuple):
    """How observations and goals become the networks' input."""

    observation: Normaliser
    goal: Normaliser


class Policy(NamedTuple):
    """All that acting needs."""

    actor: MLP
    inputs: Inputs
    warm: Array
    """bool: the replay has enough transitions; before that every action is random."""


class Learned(NamedTuple):
    """Everything that is learned."""

    actor: MLP
    critic: PyTree
    target: PyTree
    """The critic's slow copy, or None."""
    log_alpha: Array
    moments: tuple[Any, Any, Any]
    """Adam's moments of actor, critic and entropy temperature."""
    inputs: Inputs
    windows: Array
    """int32: windows learned from."""


class Noise(NamedTuple):
    """The random numbers of one window's actions [T, B, ...]."""

    policy: Array
    action: Array
    uniform: Array
    """Random actions."""
    random: Array
    """bool: whether the random action is taken."""


@dataclass(frozen=True, kw_only=True)
class OffPolicy(ABC):
    """The constants of both learners; the defaults are the paper's table."""

    plays: ClassVar[Literal["goals"]] = "goals"

    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer, in all networks."""
    learning_rate: float = 3e-4
    """Of Adam, for actor, critic and entropy temperature."""
    gamma: float = 0.99
    """Discount per step."""
    batch: int = 256
    """Transitions of one gradient step."""
    updates: int = 16
    """Gradient steps per window."""
    warmup: int = 1000
    """Transitions before the first gradient step and the first action of the policy."""
    capacity: int = 400_000
    """Transitions in the replay, rounded up to whole episodes, at least those of one window."""
    her: int = 4
    """k of HER's future strategy: a share k / (k + 1) of a minibatch is relabelled; 0: none."""
    alpha: float = 0.2
    """Entropy temperature at the start; it is tuned towards the target entropy."""
    target_entropy: float = -1.0
    """The policy's target entropy per action coordinate."""
    random_action: float = 0.3
    """Probability of a uniformly random action."""
    random_hold: int = 1
    """Steps for which a random action is held; small steps in changing directions lead nowhere."""
    random_each: bool = False
    """Each action coordinate is random or the policy's independently; a gripper can open while the hand moves on."""
    action_noise: float = 0.2
    """Deviation of the noise on the policy's action."""
    clip_inputs: float = 5.0
    """Normalised inputs are cut at this many deviations."""
    normalise_until: int = 200
    """Windows after which the normalisation is frozen; 0: no normalisation."""
    balanced: bool = False
    """Every oracle group has an equal share of each minibatch."""
    signal: Literal["td-error", "disagreement"] = "td-error"
    """What ``update`` returns per episode for rules that use a signal."""

    @abstractmethod
    def init_critic(self, key: Array, space: GoalSpace) -> tuple[PyTree, PyTree]:
        """Fresh critic and its slow copy (None where there is none)."""

    @abstractmethod
    def critic_loss(self, learned: Learned, critic: PyTree, batch: Transitions, key: Array) -> Loss:
        """The loss of the critic on a minibatch, and numbers for the records."""

    @abstractmethod
    def value(self, learned: Learned, observation: Array, action: Array, goal: Array) -> Array:
        """[B]: what the actor maximises besides its entropy."""

    @abstractmethod
    def follow(self, critic: PyTree, target: PyTree) -> PyTree:
        """The slow copy after a gradient step."""

    @abstractmethod
    def signals(self, learned: Learned, episodes: GoalEpisodes, key: Array) -> Array:
        """float32[B]: the learner signal of un-relabelled episodes."""

    def init(self, key: Array, space: GoalSpace, n_episodes: int = 1) -> State:
        """Fresh networks and moments, and an empty replay for at least ``n_episodes``."""
        actor_key, critic_key = jax.random.split(key)
        actor = MLP((space.observation + space.goal, *self.hidden, 2 * space.action), actor_key)
        critic, target = self.init_critic(critic_key, space)
        log_alpha = jnp.float32(math.log(self.alpha))
        adam = self._adam()
        inputs = Inputs(normaliser.fresh(space.observation), normaliser.fresh(space.goal))
        learned = Learned(
            actor, critic, target, log_alpha, (adam.init(actor), adam.init(critic), adam.init(log_alpha)), inputs,
            jnp.int32(0),
        )  # fmt: skip
        room = max(n_episodes, -(-self.capacity // space.horizon))
        return State(learned, replay.empty(room, space.horizon, space.observation, space.goal, space.action))

    def policy(self, state: State) -> Policy:
        """What acting needs of the state."""
        warm = state.replay.total * state.replay.episodes.action.shape[1] >= self.warmup
        return Policy(state.learned.actor, state.learned.inputs, warm)

    def noise(self, key: Array, shape: tuple[int, int, int]) -> Noise:
        """The random numbers of a window's actions [T, B, m]."""
        keys = jax.random.split(key, 4)
        n_steps, n, m = shape
        n_held = -(-n_steps // self.random_hold)
        uniform = jax.random.uniform(keys[2], (n_held, n, m), minval=-1.0, maxval=1.0)
        random = jax.random.uniform(keys[3], (n_held, n, m if self.random_each else 1)) < self.random_action
        return Noise(
            policy=jax.random.normal(keys[0], shape),
            action=self.action_noise * jax.random.normal(keys[1], shape),
            uniform=jnp.repeat(uniform, self.random_hold, axis=0)[:n_steps],
            random=jnp.repeat(random, self.random_hold, axis=0)[:n_steps],
        )

    def explore(self, policy: Policy, rows: Array, noise: Noise) -> Array:
        """Actions [B, m] for training, from one step's noise [B, ...]."""
        action, _ = self._at(policy, rows).sample(noise.policy)
        action = jnp.clip(action + noise.action, -1.0, 1.0)
        return jnp.where(noise.random | ~policy.warm, noise.uniform, action)

    def decide(self, policy: Policy, rows: Array, key: Array = None) -> Array:
        """The deterministic policy's actions [B, m]."""
        return self._at(policy, rows).mode()

    def sample(self, policy: Policy, rows: Array, key: Array) -> Array:
        """The stochastic policy's actions [B, m], without exploration noise."""
        distribution = self._at(policy, rows)
        return distribution.sample(jax.random.normal(key, distribution.mean.shape))[0]

    def _at(self, policy: Policy, rows: Array) -> Squashed:
        n = policy.inputs.observation.mean.shape[0]
        return self.distribution(policy.actor, policy.inputs, rows[:, :n], rows[:, n:])

    def distribution(self, actor: MLP, inputs: Inputs, observation: Array, goal: Array) -> Squashed:
        """The policy's distribution for observations [..., n] and goals [..., k]."""
        return squashed(actor(jnp.concatenate(self.network_inputs(inputs, observation, goal), axis=-1)))

    def network_inputs(self, inputs: Inputs, observation: Array, goal: Array) -> tuple[Array, Array]:
        """Observation and goal, normalised and clipped."""
        return inputs.observation(observation, self.clip_inputs), inputs.goal(goal, self.clip_inputs)

    def update(
        self, state: State, episodes: GoalEpisodes, key: Array, *, n_groups: int = 1, with_signal: bool = False
    ) -> Update:
        """Learn from one window's episodes; the signal is from before the gradient steps, 0 without ``with_signal``."""
        signal_key, steps_key = jax.random.split(key)
        learned = state.learned
        filled = replay.add(state.replay, episodes)
        if self.normalise_until:
            thawed = learned.windows < self.normalise_until
            learned = learned._replace(
                inputs=jax.lax.cond(thawed, _update, lambda inputs, _: inputs, learned.inputs, episodes)
            )
        n_episodes, horizon = episodes.action.shape[:2]
        signal = self.signals(learned, episodes, signal_key) if with_signal else jnp.zeros(n_episodes, jnp.float32)
        learned = learned._replace(windows=learned.windows + 1)

        def steps(learned: Learned) -> tuple[Learned, dict[str, Array]]:
            keys = jax.random.split(steps_key, self.updates)
            groups = n_groups if self.balanced else 0
            draw = lambda key: replay.sample(filled, jax.random.fold_in(key, 0), self.batch, self.her, groups)  # noqa: E731
            batches = jax.vmap(draw)(keys)  # fewer, larger draws

            def step(learned: Learned, now: tuple[Transitions, Array]) -> tuple[Learned, dict[str, Array]]:
                return self.gradient_step(learned, *now)

            learned, numbers = jax.lax.scan(step, learned, (batches, keys), unroll=math.gcd(self.updates, UNROLL))
            return learned, {name: value.mean() for name, value in numbers.items()}

        shapes = jax.eval_shape(steps, learned)[1]
        idle = lambda learned: (learned, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))  # noqa: E731
        learned, numbers = jax.lax.cond(filled.total * horizon >= self.warmup, steps, idle, learned)
        return Update(State(learned, filled), signal, numbers)

    def gradient_step(self, learned: Learned, batch: Transitions, key: Array) -> tuple[Learned, dict[str, Array]]:
        """One Adam step of critic, actor and entropy temperature, and a step of the slow copy."""
        critic_key, actor_key = jax.random.split(jax.random.fold_in(key, 1))
        adam = self._adam()
        loss = lambda critic: self.critic_loss(learned, critic, batch, critic_key)  # noqa: E731
        gradient, numbers = jax.grad(loss, has_aux=True)(learned.critic)
        change, critic_moments = adam.update(gradient, learned.moments[1])
        critic = optax.apply_updates(learned.critic, change)
        learned = learned._replace(critic=critic)

        noise = jax.random.normal(actor_key, batch.action.shape)
        gradient, log_probability = jax.grad(self.actor_loss, argnums=1, has_aux=True)(
            learned, learned.actor, batch, noise
        )
        change, actor_moments = adam.update(gradient, learned.moments[0])
        actor = optax.apply_updates(learned.actor, change)

        gradient = jax.grad(self.entropy_loss)(learned.log_alpha, log_probability, batch.action.shape[-1])
        change, alpha_moments = adam.update(gradient, learned.moments[2])
        learned = learned._replace(
            actor=actor,
            target=self.follow(critic, learned.target),
            log_alpha=learned.log_alpha + change,
            moments=(actor_moments, critic_moments, alpha_moments),
        )
        return learned, {**numbers, "entropy": -log_probability.mean(), "alpha": jnp.exp(learned.log_alpha)}

    def actor_loss(self, learned: Learned, actor: MLP, batch: Transitions, noise: Array) -> tuple[Array, Array]:
        """alpha * log-probability - value, and the log-probabilities."""
        policy = self.distribution(actor, learned.inputs, batch.observation, batch.goal)
        action, log_probability = policy.sample(noise)
        value = self.value(learned, batch.observation, action, batch.goal)
        return (jnp.exp(learned.log_alpha) * log_probability - value).mean(), log_probability

    def entropy_loss(self, log_alpha: Array, log_probability: Array, n_actions: int) -> Array:
        """Raises the temperature where the entropy is below its target."""
        missing = log_probability + self.target_entropy * n_actions
        return -(jnp.exp(log_alpha) * jax.lax.stop_gradient(missing)).mean()

    def _adam(self) -> Any:
        return optax.adam(self.learning_rate)


def _update(inputs: Inputs, episodes: GoalEpisodes) -> Inputs:
    """Add a window's observations, achieved and desired goals to the statistics."""
    n, steps, width = episodes.achieved.shape
    desired = jnp.broadcast_to(episodes.goal[:, None], (n, steps, width))
    goals = jnp.concatenate([episodes.achieved, desired]).reshape(-1, width)
    observations = episodes.observation.reshape(n * steps, -1)
    return Inputs(inputs.observation.update(observations), inputs.goal.update(goals))
