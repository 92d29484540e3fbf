"""Replay of goal-conditioned episodes with hindsight relabelling (HER, strategy *future*), as a pytree.

Whole episodes lie in a ring of fixed size. So a future state of the same episode is an index away, and no sample can
cross an episode's end. ``add`` and ``sample`` are pure: a compiled window writes into a donated ring in place, and runs
can be ``vmap``ped.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from scout_rl.bench.learners.episodes import Array, GoalEpisodes
from scout_rl.files.refusal import Refusal


class Replay(NamedTuple):
    """A ring of episodes; it holds the numbers ``total - size`` to ``total - 1``."""

    episodes: GoalEpisodes
    """Arrays [capacity, ...]; episode number i lies at i modulo the capacity."""
    total: Array
    """int32: episodes added so far."""

    @property
    def capacity(self) -> int:
        """Episodes that fit."""
        return int(self.episodes.goal.shape[0])

    @property
    def size(self) -> Array:
        """Episodes in the ring."""
        return jnp.minimum(self.total, self.capacity)


class Transitions(NamedTuple):
    """A minibatch, relabelled."""

    observation: Array
    action: Array
    next_observation: Array
    goal: Array
    hindsight: Array
    """The goal that the episode achieves at ``future``; the goal of relabelled transitions."""
    reward: Array
    """0 where the next state is within the radius of the goal, else -1."""
    relabelled: Array
    """bool: the goal is one that the episode achieves later."""
    episode: Array
    """int32: the transition's place in the ring."""
    step: Array
    future: Array
    """int32: the step of ``hindsight``, from ``step + 1`` to the episode's end."""


def empty(capacity: int, horizon: int, observation: int, goal: int, action: int) -> Replay:
    """A ring for ``capacity`` episodes of ``horizon`` steps."""

    def zeros(*shape: int) -> Array:
        return jnp.zeros((capacity, *shape), jnp.float32)

    episodes = GoalEpisodes(
        observation=zeros(horizon + 1, observation),
        achieved=zeros(horizon + 1, goal),
        action=zeros(horizon, action),
        goal=zeros(goal),
        radius=zeros(),
        group=jnp.zeros(capacity, jnp.int32),
    )
    return Replay(episodes, jnp.int32(0))


def add(replay: Replay, episodes: GoalEpisodes) -> Replay:
    """Write a window's episodes over the oldest."""
    n = episodes.goal.shape[0]
    if n > replay.capacity:
        raise Refusal(f"a window of {n} episodes does not fit into a replay of {replay.capacity} episodes")
    place = (replay.total + jnp.arange(n)) % replay.capacity
    written = jax.tree.map(lambda ring, new: ring.at[place].set(new, unique_indices=True), replay.episodes, episodes)
    return Replay(written, replay.total + n)


def sample(replay: Replay, key: Array, n: int, k: int, n_groups: int = 0) -> Transitions:
    """Draw n transitions uniformly, each relabelled with probability k / (k + 1).

    A relabelled goal is achieved by the episode at a step drawn uniformly from those after the transition's start.
    With ``n_groups``, every group has n / n_groups rows; the others share the rows of a group without episodes.
    """
    choose, at, later, switch = jax.random.split(key, 4)
    episodes = replay.episodes
    horizon = episodes.action.shape[1]
    draw = jax.random.uniform(choose, (n,))
    episode = _balanced(replay, draw, n_groups) if n_groups else _below(draw, replay.size)
    step = jax.random.randint(at, (n,), 0, horizon)
    future = step + 1 + _below(jax.random.uniform(later, (n,)), horizon - step)
    relabelled = jax.random.uniform(switch, (n,)) < k / (k + 1)
    hindsight = episodes.achieved[episode, future]
    goal = jnp.where(relabelled[:, None], hindsight, episodes.goal[episode])
    return Transitions(
        observation=episodes.observation[episode, step],
        action=episodes.action[episode, step],
        next_observation=episodes.observation[episode, step + 1],
        goal=goal,
        hindsight=hindsight,
        reward=reward(episodes.achieved[episode, step + 1], goal, episodes.radius[episode]),
        relabelled=relabelled,
        episode=episode,
        step=step,
        future=future,
    )


def reward(achieved: Array, goal: Array, radius: Array) -> Array:
    """Sparse, success - 1: 0 within the radius, else -1."""
    distance = jnp.sqrt(jnp.sum((achieved - goal) ** 2, axis=-1))
    return -(distance > radius).astype(jnp.float32)


def _below(draw: Array, n: Array) -> Array:
    """Uniform numbers in [0, 1) to integers 0..n-1; rounding cannot reach n."""
    return jnp.minimum((draw * n).astype(jnp.int32), n - 1)


def _balanced(replay: Replay, draw: Array, n_groups: int) -> Array:
    """Places in the ring: row i determines a group, and the draw an episode of it."""
    filled = jnp.arange(replay.capacity) < replay.size
    member = filled & (replay.episodes.group[None] == jnp.arange(n_groups)[:, None])
    count_up_to = jnp.cumsum(member, axis=1)
    count = count_up_to[:, -1]
    present = jnp.argsort(count == 0, stable=True)  # groups with episodes first, in their order
    n_present = jnp.maximum((count > 0).sum(), 1)
    group = present[jnp.arange(len(draw)) * n_present // len(draw)]
    rank = _below(draw, count[group])
    return jax.vmap(lambda g, r: jnp.searchsorted(count_up_to[g], r + 1))(group, rank).astype(jnp.int32)
