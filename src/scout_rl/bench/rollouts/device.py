"""Cells to episodes: a policy and a batch of pure simulators in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from scout_rl.bench.learners.episodes import Array, Decision, Episodes, PyTree

LONGEST_CHUNK = 40
"""The most steps between two checks of whether all episodes are over."""


class PureSimulator(Protocol):
    """What a rollout needs: single-environment pure functions and a time limit."""

    @property
    def max_steps(self) -> int:
        """The time limit in steps, counted from the start of any level."""

    def observe(self, state: Any) -> Array:
        """What the policy sees in a state."""

    def step(self, state: Any, action: Array) -> tuple[Any, Any]:
        """The next state, and a `StepResult`: ``observation``, ``success``, ``terminated``, ``truncated``."""


class _Live(NamedTuple):
    """What one step passes to the next."""

    state: PyTree
    observation: Array
    alive: Array
    key: Array


Act = Callable[[Array, Array], Decision]
"""(observation [B, ...], key) to a decision; a learner's ``act`` with its state bound."""


def rollout(simulator: PureSimulator, act: Act, starts: PyTree, key: Array) -> Episodes:
    """One episode per start, to its success or its time limit.

    The loop stops when all episodes are over (checked once per chunk), so short episodes cost little although the
    buffer has room for the full time limit.
    """
    starts = jax.tree.map(jnp.asarray, starts)
    observation = jax.vmap(simulator.observe)(starts)
    live = _Live(starts, observation, jnp.ones(observation.shape[0], bool), key)
    chunk = max(d for d in range(1, LONGEST_CHUNK + 1) if simulator.max_steps % d == 0)
    n_chunks = simulator.max_steps // chunk

    def step(live: _Live, _: None) -> tuple[_Live, tuple[Array, ...]]:
        key, action_key = jax.random.split(live.key)
        decision = act(live.observation, action_key)
        state, result = jax.vmap(simulator.step)(live.state, decision.action)
        after = _Live(state, result.observation, live.alive & ~result.terminated & ~result.truncated, key)
        return after, (live.observation, decision.action, decision.memory, result.success & live.alive, live.alive)

    shapes = jax.eval_shape(lambda live: step(live, None)[1], live)
    buffers = jax.tree.map(lambda s: jnp.zeros((simulator.max_steps, *s.shape), s.dtype), shapes)

    def running(carry: tuple[Array, _Live, PyTree]) -> Array:
        return (carry[0] < n_chunks) & carry[1].alive.any()

    def one_chunk(carry: tuple[Array, _Live, PyTree]) -> tuple[Array, _Live, PyTree]:
        i, live, buffers = carry
        live, steps = jax.lax.scan(step, live, None, length=chunk)
        write = lambda buffer, new: jax.lax.dynamic_update_slice_in_dim(buffer, new, i * chunk, axis=0)  # noqa: E731
        return i + 1, live, jax.tree.map(write, buffers, steps)

    _, live, buffers = jax.lax.while_loop(running, one_chunk, (jnp.int32(0), live, buffers))
    observation, action, memory, success, valid = buffers
    return Episodes(observation, action, memory, success, valid, live.observation)
