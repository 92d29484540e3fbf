"""PPO against independent NumPy, on a problem with a known answer, and on its guarantees."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl.bench.learners.ppo import METRICS, PPO, Memory, Minibatch, normalised
from scout_rl.bench.rollouts.device import rollout
from tests.bench.learners.random_episodes import random_episodes


def by_hand(episodes, final_value, gamma, lam, cost):
    """Advantages as the definition has them, episode by episode: sum over k of (gamma lam)^k times delta(t +
    k)."""
    value = np.asarray(episodes.memory.value, dtype=np.float64)
    advantage, td_error = np.zeros_like(value), np.zeros_like(value)
    for b in range(value.shape[1]):
        length = int(np.asarray(episodes.valid)[:, b].sum())
        for t in range(length):
            ends = bool(episodes.success[t, b])
            reward = (0.0 if ends else -1.0) if cost else float(ends)
            after = 0.0 if ends else value[t + 1, b] if t + 1 < len(value) else final_value[b]
            td_error[t, b] = reward + gamma * after - value[t, b]
        for t in range(length):
            advantage[t, b] = sum((gamma * lam) ** k * td_error[t + k, b] for k in range(length - t))
    return advantage, td_error


@pytest.mark.parametrize("reward", ["success", "cost"])
def test_advantages_against_their_definition(reward):
    episodes = random_episodes(0)
    final_value = np.random.default_rng(1).normal(size=6).astype(np.float32)
    ppo = PPO(reward=reward, gamma=0.9, lam=0.8)
    targets = jax.jit(ppo.targets)(episodes, final_value)
    advantage, td_error = by_hand(episodes, final_value, 0.9, 0.8, cost=reward == "cost")
    valid = np.asarray(episodes.valid)
    np.testing.assert_allclose(np.asarray(targets.advantage)[valid], advantage[valid], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(targets.td_error, td_error, rtol=1e-5, atol=1e-5)
    expected = np.where(valid, advantage + np.asarray(episodes.memory.value), 0)
    np.testing.assert_allclose(targets.value, expected, rtol=1e-5, atol=1e-5)


def test_normalised_advantages_against_numpy():
    advantage = np.random.default_rng(0).normal(3, 2, 20).astype(np.float32)
    weight = (np.arange(20) < 13).astype(np.float32)
    kept = advantage[:13].astype(np.float64)
    expected = (kept - kept.mean()) / (kept.std(ddof=1) + 1e-8)
    result = np.asarray(normalised(advantage, weight))
    np.testing.assert_allclose(result[:13], expected, atol=1e-5)
    assert (result[13:] == 0).all()
    assert np.isfinite(normalised(jnp.ones(3), jnp.array([1.0, 0, 0]))).all(), "a single step"


def test_the_clipped_loss_against_numpy():
    generator = np.random.default_rng(0)
    n, kept = 40, 31
    logits = generator.normal(size=(n, 7)).astype(np.float32)
    value = generator.normal(size=n).astype(np.float32)
    batch = Minibatch(
        observation=np.zeros(n),
        action=generator.integers(0, 7, n),
        memory=Memory(np.log(generator.uniform(0.05, 0.5, n)).astype(np.float32), value),
        advantage=generator.normal(size=n).astype(np.float32),
        value=generator.normal(size=n).astype(np.float32),
        weight=(np.arange(n) < kept).astype(np.float32),
    )
    ppo = PPO()
    total, means = ppo.loss(lambda _: (jnp.asarray(logits), jnp.asarray(value)), batch)

    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    terms, clipped = [], 0
    advantage = batch.advantage[:kept].astype(np.float64)
    advantage = (advantage - advantage.mean()) / advantage.std(ddof=1)
    for i in range(kept):
        ratio = probability[i, batch.action[i]] / np.exp(batch.memory.log_probability[i])
        # Flat where the ratio has left the trust region in the direction that the advantage wants.
        surrogate = (min(ratio, 1.2) if advantage[i] > 0 else max(ratio, 0.8)) * advantage[i]
        clipped += not 0.8 <= ratio <= 1.2
        entropy = -(probability[i] * np.log(probability[i])).sum()
        terms.append((-surrogate, 0.5 * (value[i] - batch.value[i]) ** 2, entropy))
    policy_loss, value_loss, entropy = np.mean(terms, axis=0)
    assert 0 < clipped < kept
    np.testing.assert_allclose(means["policy_loss"], policy_loss, rtol=1e-4)
    np.testing.assert_allclose(means["value_loss"], value_loss, rtol=1e-4)
    np.testing.assert_allclose(means["entropy"], entropy, rtol=1e-4)
    np.testing.assert_allclose(means["clip_fraction"], clipped / kept, rtol=1e-5)
    np.testing.assert_allclose(total, policy_loss + 0.5 * value_loss - 0.01 * entropy, rtol=1e-4)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_an_update_changes_every_parameter_and_is_deterministic(ppo, init, update):
    state, episodes = init(jax.random.key(0)), random_episodes(0)
    first, again = (update(state, episodes, jax.random.key(1)) for _ in range(2))
    assert same(first, again)
    for before, after in zip(
        jax.tree.leaves(state.learned.network), jax.tree.leaves(first.state.learned.network), strict=True
    ):
        assert not np.array_equal(before, after)
    other = update(state, episodes, jax.random.key(2))
    assert not same(first.state, other.state), "the key shuffles the minibatches"
    assert set(first.metrics) == set(METRICS)
    assert all(np.isfinite(v) for v in first.metrics.values())
    # 39 valid steps in minibatches of at most 16: 3 of them an epoch, 4 epochs.
    assert int(first.state.learned.optimizer[1][0].count) == 12


def test_what_comes_after_an_episodes_end_changes_nothing(ppo, init, update):
    state, episodes = init(jax.random.key(0)), random_episodes(0)

    def wipe(a):
        return jnp.where(episodes.valid.reshape(12, 6, *[1] * (a.ndim - 2)), a, jnp.zeros_like(a))

    wiped = episodes._replace(
        observation=wipe(episodes.observation),
        action=wipe(episodes.action),
        memory=jax.tree.map(wipe, episodes.memory),
        success=wipe(episodes.success),
    )
    assert not same(episodes, wiped)
    assert same(update(state, episodes, jax.random.key(1)), update(state, wiped, jax.random.key(1)))


def test_the_signal_is_the_mean_absolute_td_error_before_the_update(ppo, init, update):
    state, episodes = init(jax.random.key(0)), random_episodes(3)
    _, final_value = state.learned.network(episodes.final_observation)
    _, td_error = by_hand(episodes, np.asarray(final_value), ppo.gamma, ppo.lam, cost=False)
    expected = np.abs(td_error).sum(0) / np.asarray(episodes.valid).sum(0)
    signal = update(state, episodes, jax.random.key(0)).signal
    np.testing.assert_allclose(signal, expected, rtol=1e-4)


@pytest.mark.slow  # `make test` trains batches in tests/bench/campaign/test_batch.py
def test_updates_of_several_runs_are_one_vmapped_call_whatever_the_row_fractions(ppo, init, update):
    """Run 0 has 39 steps, run 1 has 10: alone, these fit into 0.625 of the 16 rows of a minibatch."""
    several = jax.jit(jax.vmap(dataclasses.replace(ppo, row_fractions=(1.0,)).update))
    states = [init(jax.random.key(k)) for k in range(2)]
    episodes = [random_episodes(0), random_episodes(1, lengths=(3, 1, 2, 1, 1, 2), failed=())]
    keys = jax.random.split(jax.random.key(5), 2)
    stack = lambda *trees: jax.tree.map(lambda *a: jnp.stack(a), *trees)  # noqa: E731
    together = several(stack(*states), stack(*episodes), keys)
    for k in range(2):
        alone = update(states[k], episodes[k], keys[k])
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a, b[k], rtol=1e-3, atol=2e-5)


class Riddle(NamedTuple):
    """A state of the tiny problem."""

    answer: jax.Array
    step_count: jax.Array


class Outcome(NamedTuple):
    observation: jax.Array
    success: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class RiddleSimulator:
    """The object ahead says which answer (0, 1 or 2) is success; anything else is another try, up to three.

    Known: the best policy succeeds at once from any start, and every state is worth 1.
    """

    max_steps = 3

    def observe(self, state):
        objects = jnp.array([2, 5, 8], jnp.uint8)
        return jnp.ones((7, 7, 3), jnp.uint8).at[3, 5, 0].set(objects[state.answer])

    def step(self, state, action):
        state = state._replace(step_count=state.step_count + 1)
        right = action == state.answer
        return state, Outcome(self.observe(state), right, right, state.step_count >= self.max_steps)


def test_ppo_solves_a_problem_with_a_known_answer(init):
    simulator, ppo = (
        RiddleSimulator(),
        PPO(minibatch=64, learning_rate=1e-3, gamma=0.5, row_fractions=(1.0,)),
    )

    @jax.jit
    def window(state, key):
        cell_key, act_key, update_key = jax.random.split(key, 3)
        starts = Riddle(jax.random.randint(cell_key, (64,), 0, 3), jnp.zeros(64, jnp.int32))
        episodes = rollout(simulator, functools.partial(ppo.act, ppo.policy(state)), starts, act_key)
        return ppo.update(state, episodes, update_key).state, episodes.success[0].mean()

    # It learns until it holds: PPO falls back now and then, in another window for every number of threads.
    state, at_once = init(jax.random.key(0)), []
    while len(at_once) < 150 and not np.mean(at_once[-5:] or 0) > 0.97:
        state, share = window(state, jax.random.key(len(at_once)))
        at_once.append(float(share))
    logits, value = state.learned.network(jax.vmap(simulator.observe)(Riddle(jnp.arange(3), jnp.zeros(3))))
    assert at_once[0] < 0.5
    # All states that there are, after the last update: the windows above are those that it was trained on.
    right = np.diag(jax.nn.softmax(logits, axis=1))
    assert (right > 0.9).all()
    np.testing.assert_allclose(value, 1, atol=0.15)
