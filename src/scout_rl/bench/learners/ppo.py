"""Proximal policy optimisation on whole episodes of unequal length: the paper's MiniGrid learner.

It differs from CleanRL's ``ppo.py``:

- Reward: 1 at success, 0 otherwise (``reward="success"``). With the paper's success-1 (``reward="cost"``: -1
  per step until success) values reach -100 and drown the policy's gradient. On ``doorkey``, seed 40, levels
  drawn uniformly, held-out success after 100 windows was 0.30, against 0.91 with 1 at success.
- Episodes end at success or at the time limit, one per rollout; nothing is carried into the next window. At the
  time limit the value of the last observation is bootstrapped, since the policy does not see the limit.
- A window's n valid steps are split into ceil(n / minibatch) minibatches of equal size, so that no Adam step
  is taken on a few left-over steps.
- The value loss is not clipped and the learning rate is constant.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from scout_rl.bench.learners.episodes import Array, Decision, Episodes, GoalSpace
from scout_rl.bench.learners.learner import State, Update
from scout_rl.bench.learners.networks import GridActorCritic

METRICS = ("policy_loss", "value_loss", "entropy", "clip_fraction", "kl")
"""The keys of ``Update.metrics``: means over the window's gradient steps, each from before its step."""


class PPOState(NamedTuple):
    """Everything that is learned."""

    network: GridActorCritic
    optimizer: optax.OptState


class Memory(NamedTuple):
    """The behaviour policy's log-probability and value of an action."""

    log_probability: Array
    value: Array


class Targets(NamedTuple):
    """What the update fits, per step [T, B]; 0 for invalid steps."""

    advantage: Array
    value: Array
    td_error: Array


class Minibatch(NamedTuple):
    """A flat batch of steps; those of weight 0 (padding, or after an episode's end) are ignored."""

    observation: Array
    action: Array
    memory: Memory
    advantage: Array
    value: Array
    weight: Array


@dataclass(frozen=True)
class PPO:
    """The paper's learner table; hashable, so that it can be a static argument of ``jax.jit``."""

    plays: ClassVar[Literal["steps"]] = "steps"

    n_actions: int = 7
    """Actions of the environment: MiniGrid has seven."""
    learning_rate: float = 2.5e-4
    """Of Adam; it stays constant."""
    gamma: float = 0.99
    """Discount per step."""
    lam: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.2
    """How far the probability of an action may move in a window: a ratio from 1 - clip to 1 + clip."""
    epochs: int = 4
    """Passes over the steps of a window."""
    minibatch: int = 1024
    """Most steps of one gradient step."""
    entropy: float = 0.01
    """Weight of the policy's entropy in the loss."""
    value: float = 0.5
    """Weight of the value's error in the loss."""
    max_grad_norm: float = 0.5
    """Longer gradients are cut to this length."""
    reward: Literal["success", "cost"] = "success"
    """``success``: 1 at success and 0 before. ``cost``: 0 at success and -1 before, the paper's success-1."""

    row_fractions: tuple[float, ...] = (0.25, 0.5, 1.0)
    """A minibatch is computed on the smallest of these fractions of its rows that holds it, since a good policy's
    window is shorter than one minibatch. Under ``vmap`` all are computed: see `for_vmap`."""

    def init(self, key: Array, space: GoalSpace | None = None, n_episodes: int = 1) -> State:
        """Fresh networks and Adam moments."""
        network = GridActorCritic(self.n_actions, key)
        return State(PPOState(network, self._optimizer().init(network)))

    def policy(self, state: State) -> GridActorCritic:
        """The network."""
        network: GridActorCritic = state.learned.network
        return network

    def act(self, policy: GridActorCritic, observation: Array, key: Array) -> Decision:
        """Sample from the policy."""
        logits, value = policy(observation)
        action = jax.random.categorical(key, logits)
        return Decision(action, Memory(_log_probability(logits, action), value))

    def decide(self, policy: GridActorCritic, rows: Array, key: Array) -> Array:
        """Sampled actions in evaluations too: an argmax policy loops under a partial view."""
        return self.act(policy, rows, key).action

    sample = decide

    def update(self, state: State, episodes: Episodes, key: Array) -> Update:
        """A few epochs of shuffled minibatches over the window's valid steps."""
        learned: PPOState = state.learned
        _, final_value = learned.network(episodes.final_observation)
        targets = self.targets(episodes, final_value)
        steps = Minibatch(
            observation=episodes.observation,
            action=episodes.action,
            memory=episodes.memory,
            advantage=targets.advantage,
            value=targets.value,
            weight=episodes.valid.astype(jnp.float32),
        )
        steps = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), steps)
        n_valid = episodes.valid.sum()
        n_minibatches = jnp.maximum(1, -(-n_valid // self.minibatch))
        size = -(-n_valid // n_minibatches)
        row_counts = [math.ceil(fraction * self.minibatch) for fraction in self.row_fractions]
        fits = [functools.partial(self._epochs, steps, n_minibatches, size, n_rows) for n_rows in row_counts]
        smallest = jnp.searchsorted(jnp.asarray(row_counts), size)
        learned, totals = jax.lax.switch(smallest, fits, learned, jax.random.split(key, self.epochs))
        signal = jnp.abs(targets.td_error).sum(0) / jnp.maximum(episodes.valid.sum(0), 1)
        return Update(State(learned), signal, {name: t / (self.epochs * n_minibatches) for name, t in totals.items()})

    def for_vmap(self) -> PPO:
        """Every minibatch on all of its rows."""
        return dataclasses.replace(self, row_fractions=(max(self.row_fractions),))

    def _epochs(
        self, steps: Minibatch, n_minibatches: Array, size: Array, n_rows: int, state: PPOState, keys: Array
    ) -> tuple[PPOState, dict[str, Array]]:
        """All gradient steps of a window, each on ``size`` of its valid steps in ``n_rows`` rows."""
        n_valid = steps.weight.sum().astype(size.dtype)

        def epoch(carry: Any, epoch_key: Array) -> Any:
            shuffle = jax.random.uniform(epoch_key, steps.weight.shape)
            order = jnp.pad(jnp.argsort(jnp.where(steps.weight > 0, shuffle, 2.0)), (0, n_rows))

            def one_minibatch(i: Array, carry: Any) -> Any:
                state, totals = carry
                rows = jax.lax.dynamic_slice(order, (i * size,), (n_rows,))
                slot = jnp.arange(n_rows)
                inside = (slot < size) & (i * size + slot < n_valid)
                batch = jax.tree.map(lambda a: a[rows], steps)._replace(weight=inside.astype(jnp.float32))
                gradient, means = jax.grad(self.loss, has_aux=True)(state.network, batch)
                change, optimizer = self._optimizer().update(gradient, state.optimizer)
                state = PPOState(optax.apply_updates(state.network, change), optimizer)
                return state, {name: totals[name] + means[name] for name in totals}

            return jax.lax.fori_loop(0, n_minibatches, one_minibatch, carry), None

        zeros = dict.fromkeys(METRICS, jnp.float32(0))
        (state, totals), _ = jax.lax.scan(epoch, (state, zeros), keys)
        return state, totals

    def targets(self, episodes: Episodes, final_value: Array) -> Targets:
        """Generalised advantages, value targets and TD errors, with the behaviour policy's values."""
        success, valid, value = episodes.success, episodes.valid, episodes.memory.value
        reward = success.astype(jnp.float32) - (1.0 if self.reward == "cost" else 0.0)
        next_value = jnp.concatenate([value[1:], final_value[None]])
        td_error = jnp.where(valid, reward + self.gamma * jnp.where(success, 0.0, next_value) - value, 0.0)

        def backwards(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
            error, last = step
            advantage = error + self.gamma * self.lam * jnp.where(last, 0.0, advantage)
            return advantage, advantage

        last = success | ~valid
        _, advantage = jax.lax.scan(backwards, jnp.zeros_like(final_value), (td_error, last), reverse=True)
        return Targets(advantage, jnp.where(valid, advantage + value, 0.0), td_error)

    def loss(self, network: GridActorCritic, batch: Minibatch) -> tuple[Array, dict[str, Array]]:
        """The clipped surrogate, the value error and the entropy: means over the steps of weight 1."""
        logits, value = network(batch.observation)
        log_ratio = _log_probability(logits, batch.action) - batch.memory.log_probability
        ratio = jnp.exp(log_ratio)
        advantage = normalised(batch.advantage, batch.weight)
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        terms = {
            "policy_loss": -jnp.minimum(ratio * advantage, clipped * advantage),
            "value_loss": 0.5 * (value - batch.value) ** 2,
            "entropy": -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1),
            "clip_fraction": (jnp.abs(ratio - 1) > self.clip).astype(jnp.float32),
            "kl": ratio - 1 - log_ratio,
        }
        means = {name: _mean(terms[name], batch.weight) for name in METRICS}
        total = means["policy_loss"] + self.value * means["value_loss"] - self.entropy * means["entropy"]
        return total, means

    def _optimizer(self) -> Any:
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optax.adam(self.learning_rate, eps=1e-5))


def normalised(advantage: Array, weight: Array) -> Array:
    """Advantages of a minibatch with mean 0 and sample standard deviation 1 over the entries of weight 1."""
    n = weight.sum()
    centred = (advantage - _mean(advantage, weight)) * weight
    deviation = jnp.sqrt(jnp.sum(centred**2) / jnp.maximum(n - 1, 1))
    return centred / (deviation + 1e-8)


def _mean(x: Array, weight: Array) -> Array:
    return jnp.sum(x * weight) / jnp.maximum(weight.sum(), 1)


def _log_probability(logits: Array, action: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], axis=-1)[..., 0]
