"""The same source on JAX: jitted, in 64 and in 32 bits, and vmapped, against NumPy over 1,000 windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl import rules
from scout_rl.rules.cells import Outcomes
from tests.rules.streams import Stream
from tests.rules.test_contract import groups, small

WINDOWS, CONTEXTS, LEVELS = 1000, 20, 5
MARGIN = 1e-6


def thresholds_are_clear(rule, state):
    """Whether every number that the rule compares with a threshold is MARGIN off it.

    Rates of whole counts (aced, rfcl) are exact quotients in both precisions, so a tie there is no danger.
    """
    if isinstance(rule, rules.GroupFrontier):
        state = state.pooled
    if isinstance(rule, rules.Beta):
        a, b = 1 + state.wins, 1 + state.trials - state.wins
        high = 1 - rules.incomplete_beta.incomplete_beta(a, b, rule.tau_high)
        low = rules.incomplete_beta.incomplete_beta(a, b, rule.tau_low)
        rate = state.wins / np.maximum(state.trials, 1)
        gaps = [high - rule.certainty, low - rule.certainty, rate - rule.tau_low]
    elif isinstance(rule, rules.Wilson):
        lower, upper, rate = rules.wilson.wilson_bounds(state.wins, state.trials, rule.z)
        gaps = [lower - rule.tau_high, upper - rule.tau_low, rate - rule.tau_low]
    elif isinstance(rule, rules.Learnability):
        score = state.learnability.reshape(-1)
        last = np.sort(score)[-max(1, round(rule.share * score.size))]
        gaps = [np.abs(score - last) - rules.learnability.TIE]
    elif isinstance(rule, rules.Scout):
        gaps = [state.statistics.success - rule.tau_high, state.statistics.success - rule.tau_low]
    else:
        return True
    return min(np.abs(gap).min() for gap in gaps) > MARGIN


def trace(rule, seed):
    """Play 1,000 windows on NumPy: probabilities, frontiers and the outcomes, or None where a threshold was grazed."""
    state = rule.init(CONTEXTS, LEVELS, groups(CONTEXTS))
    stream = Stream(CONTEXTS, LEVELS, 16, seed)
    p, frontier, seen = [], [], []
    for _ in range(WINDOWS):
        p.append(rule.distribution(state))
        seen.append(stream.next(p[-1]))
        state = rule.update(state, seen[-1])
        if not thresholds_are_clear(rule, state):
            return None
        f = rule.frontier(state)
        frontier.append(np.zeros(CONTEXTS) if f is None else f)
    return np.stack(p), np.stack(frontier), Outcomes(*(np.stack(c) for c in zip(*seen, strict=True)))


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
    traces = (trace(rule, seed) for seed in range(20))
    p, frontier, outcomes = next(t for t in traces if t is not None)
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


@pytest.mark.parametrize("key", rules.RULES)
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
