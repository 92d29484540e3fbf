"""The same source on JAX: jitted, in 64 and in 32 bits, and vmapped, against NumPy over 1,000 windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl import rules
from tests.rules.streams import Stream
from tests.rules.test_contract import groups, small
from tests.rules.traces import CONTEXTS, LEVELS, clear_trace


def replay(rule, outcomes):
    """The same outcomes through one jitted scan."""

    def window(state, seen):
        p = rule.distribution(state)
        state = rule.update(state, seen)
        f = rule.frontier(state)
        return state, (p, jnp.zeros(CONTEXTS) if f is None else f)

    start = jax.tree.map(jnp.asarray, rule.init(CONTEXTS, LEVELS, groups(CONTEXTS)))
    _, (p, frontier) = jax.jit(lambda s, o: jax.lax.scan(window, s, o))(start, jax.tree.map(jnp.asarray, outcomes))
    return np.asarray(p), np.asarray(frontier)


@pytest.mark.parametrize("key", rules.RULES)
def test_numpy_and_jax_agree_over_a_thousand_windows(key):
    rule = small(key)
    p, frontier, outcomes = clear_trace(rule)
    with jax.enable_x64(True):
        p64, frontier64 = replay(rule, outcomes)
    assert p64.dtype == np.float64
    np.testing.assert_array_equal(frontier64, frontier)
    np.testing.assert_allclose(p64, p, rtol=0, atol=1e-10)
    p32, frontier32 = replay(rule, outcomes)
    assert p32.dtype == np.float32
    np.testing.assert_array_equal(frontier32, frontier)
    np.testing.assert_allclose(p32, p, rtol=0, atol=1e-5)
    assert rule.frontier(rule.init(2, 2, [0, 1])) is None or len(np.unique(frontier)) > 1


UNLIKE = {"ability", "scout", "group-frontier", "plr", "beta"}
"""Rules with code of their own for arrays with leading axes; the others take part in the slow tests."""


@pytest.mark.parametrize(
    "key", [key if key in UNLIKE else pytest.param(key, marks=pytest.mark.slow) for key in rules.RULES]
)
def test_vmap_is_separate_runs(key):
    rule = small(key)
    start = jax.tree.map(jnp.asarray, rule.init(CONTEXTS, LEVELS, groups(CONTEXTS)))
    streams = [Stream(CONTEXTS, LEVELS, 16, seed) for seed in range(3)]
    many = jax.tree.map(lambda a: jnp.stack([a] * 3), start)
    step, weigh = jax.jit(jax.vmap(rule.update)), jax.jit(jax.vmap(rule.distribution))
    singles = [rule.init(CONTEXTS, LEVELS, groups(CONTEXTS)) for _ in streams]
    for _ in range(12):
        seen = [stream.next(rule.distribution(state)) for stream, state in zip(streams, singles, strict=True)]
        singles = [rule.update(state, o) for state, o in zip(singles, seen, strict=True)]
        many = step(many, jax.tree.map(lambda *a: jnp.stack(a), *seen))
    p = weigh(many)
    for i, state in enumerate(singles):
        np.testing.assert_allclose(p[i], rule.distribution(state), rtol=0, atol=1e-5)
