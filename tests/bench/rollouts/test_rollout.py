"""Rollouts on DoorKey with a fixed random policy: masks, endings, and agreement with the stock
environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.minigrid import codec
from scout_rl.bench.families.minigrid.contexts import stock_env
from scout_rl.bench.families.minigrid.simulator import Simulator
from scout_rl.bench.learners.episodes import Decision
from scout_rl.bench.rollouts.device import rollout
from scout_rl.bench.settings.settings import SETTINGS

SETTING = SETTINGS["doorkey-small"]
HORIZON = 100


def act(observation, key):
    """Uniform over the seven actions; remembers how many objects it saw."""
    action = jax.random.randint(key, observation.shape[:1], 0, 7)
    return Decision(action, {"seen": (observation[..., 0] > 1).sum((1, 2))})


@pytest.fixture(scope="module")
def played():
    minigrid = family("minigrid")
    simulator = Simulator(8, 8, max_steps=HORIZON)
    ladder = minigrid.starts(load_bank(SETTING).train.contexts, 5)
    starts = {name: np.concatenate([a[:4, 4], a[:4, 3], a[:4, 0]]) for name, a in ladder.items()}
    packed = jax.tree.map(jnp.asarray, codec.to_simulator(simulator, starts))
    episodes = jax.jit(lambda s, k: rollout(simulator, act, s, k))(packed, jax.random.key(1))
    return starts, jax.tree.map(np.asarray, episodes)


def test_each_episode_is_one_run_of_valid_steps_that_ends_at_success_or_at_the_limit(played):
    _, episodes = played
    lengths = episodes.valid.sum(0)
    np.testing.assert_array_equal(episodes.valid, np.arange(HORIZON)[:, None] < lengths)
    succeeded = episodes.success.any(0)
    assert 0 < succeeded.sum() < len(succeeded)
    assert (lengths[~succeeded] == HORIZON).all()
    np.testing.assert_array_equal(episodes.success.argmax(0)[succeeded], lengths[succeeded] - 1)
    np.testing.assert_array_equal(episodes.success.sum(0), succeeded)


def test_the_stock_environment_agrees_step_by_step(played):
    starts, episodes = played
    env = stock_env(SETTING)
    env.reset(seed=0)
    env.max_steps = HORIZON
    for b in range(episodes.valid.shape[1]):
        codec.restore_stock(env, {name: array[b] for name, array in starts.items()})
        view = env.gen_obs()["image"]
        for t in range(episodes.valid[:, b].sum()):
            np.testing.assert_array_equal(view, episodes.observation[t, b])
            observation, _, terminated, truncated, _ = env.step(int(episodes.action[t, b]))
            view = observation["image"]
            assert terminated == episodes.success[t, b]
        assert terminated or truncated


def test_what_the_policy_remembers_is_kept_beside_what_it_saw(played):
    _, episodes = played
    seen = (episodes.observation[..., 0] > 1).sum((2, 3))
    np.testing.assert_array_equal(episodes.memory["seen"][episodes.valid], seen[episodes.valid])
