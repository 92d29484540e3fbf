"""Hindsight relabelling: who is drawn, with which goal and reward, and that nothing crosses an episode's end."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from scout_rl.bench.learners import replay
from tests.bench.learners.goal_episodes import telling

ADD = jax.jit(replay.add)
SAMPLE = jax.jit(replay.sample, static_argnums=(2, 3, 4))


def filled(n_added, capacity, horizon, window=2, n_groups=1):
    ring = replay.empty(capacity, horizon, 2, 2, 2)
    for first in range(0, n_added, window):
        ring = ADD(ring, telling(first, window, horizon, n_groups))
    return ring


def drawn(ring, n, k, seed=0, n_groups=0):
    return jax.tree.map(np.asarray, SAMPLE(ring, jax.random.key(seed), n, k, n_groups))


@settings(max_examples=30, deadline=None)
@given(n_windows=st.integers(1, 12), size=st.sampled_from([(5, 1), (7, 9)]), seed=st.integers(0, 2**31))
def test_every_transition_is_one_of_an_episode_that_is_there(n_windows, size, seed):
    (capacity, horizon), n_added = size, 2 * n_windows  # few sizes, since each is compiled
    ring = filled(n_added, capacity, horizon)
    got = drawn(ring, 64, 4, seed)
    episode, t = got.observation[:, 0], got.observation[:, 1]
    oldest = max(0, n_added - capacity)
    assert (episode >= oldest).all()
    assert (episode < n_added).all()
    np.testing.assert_array_equal(got.next_observation, np.stack([episode, t + 1], axis=-1))  # of the same episode
    np.testing.assert_allclose(got.action * 1e6, np.stack([episode, t], axis=-1), rtol=1e-6)
    assert (t >= 0).all()
    assert (t < horizon).all()
    own = got.goal[:, 0] == -1
    np.testing.assert_array_equal(own, ~got.relabelled)
    np.testing.assert_array_equal(got.goal[own], np.stack([-np.ones(own.sum()), episode[own]], axis=-1))
    later = got.goal[~own]
    np.testing.assert_array_equal(later[:, 0], episode[~own])  # achieved in the same episode
    assert (later[:, 1] > t[~own]).all()  # after the transition's start
    assert (later[:, 1] <= horizon).all()
    # within 0.5 of the goal only where the goal is the very next state
    expected = np.where(~own & (got.goal[:, 1] == t + 1), 0.0, -1.0)
    np.testing.assert_array_equal(got.reward, expected)


def test_shares_are_those_of_the_future_strategy():
    """Episodes, steps and future steps are uniform, four fifths are relabelled: chi-square at fixed seeds."""
    n, horizon, rows = 6, 5, 60_000
    got = drawn(filled(n, 8, horizon), rows, 4)
    assert stats.chisquare(np.bincount(got.observation[:, 0].astype(int), minlength=n)).pvalue > 0.001
    t = got.observation[:, 1].astype(int)
    assert stats.chisquare(np.bincount(t, minlength=horizon)).pvalue > 0.001
    assert stats.binomtest(int(got.relabelled.sum()), rows, 4 / 5).pvalue > 0.001
    for step in range(horizon):
        ahead = got.hindsight[t == step, 1].astype(int) - step - 1
        counts = np.bincount(ahead, minlength=horizon - step)
        assert len(counts) == horizon - step
        assert len(counts) == 1 or stats.chisquare(counts).pvalue > 0.001


def test_no_relabelling_with_k_0():
    assert not drawn(filled(4, 4, 5), 500, 0).relabelled.any()


def test_the_ring_forgets_the_oldest():
    ring = filled(10, 6, 3)
    assert int(ring.total) == 10
    assert sorted(np.asarray(ring.episodes.observation)[:, 0, 0]) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(ValueError, match="a window of 7 episodes does not fit into a replay of 6"):
        replay.add(ring, telling(0, 7, 3))


def test_balanced_minibatches_have_their_quotas():
    ring = replay.empty(64, 4, 2, 2, 2)
    uneven = telling(0, 40, 4)._replace(group=np.array([0] * 37 + [2] * 3, np.int32))  # group 1 is empty
    got = drawn(ADD(ring, uneven), 256, 4, n_groups=3)
    group = np.where(got.observation[:, 0] < 37, 0, 2)
    assert np.bincount(group, minlength=3).tolist() == [128, 0, 128]  # the empty group cedes its rows
    assert set(got.observation[group == 2, 0].astype(int)) == {37, 38, 39}
    counts = np.bincount(drawn(ADD(ring, uneven), 60_000, 4, 1, 3).observation[:, 0].astype(int), minlength=40)
    assert stats.chisquare(counts[:37]).pvalue > 0.001
    assert stats.chisquare(counts[37:]).pvalue > 0.001
    three = drawn(filled(30, 32, 4, n_groups=3), 300, 4, n_groups=3)
    assert np.bincount(three.observation[:, 0].astype(int) % 3).tolist() == [100, 100, 100]
