"""Contrastive RL: InfoNCE against torch, and the tiny problem."""

import jax
import numpy as np
import pytest

from scout_rl.bench.learners.contrastive import Contrastive
from tests.bench.learners.goal_episodes import random_episodes
from tests.bench.learners.test_sac import SMALL, SPACE, batch_of, inputs, mlp, reach_rate, state_of

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("energy", ["distance", "product"])
def test_info_nce_against_torch(energy):
    learner = Contrastive(**SMALL, energy=energy, representation=8)
    fresh = learner.init(jax.random.key(0), SPACE, 4).learned
    state = state_of()._replace(learned=fresh._replace(inputs=state_of().learned.inputs))
    batch = batch_of(state, 4)
    seen = inputs(state, batch.observation, batch.hindsight)  # positives are later states, relabelled or not
    left = mlp(state.learned.critic.action, np.concatenate([seen[:, :5], batch.action], axis=-1))
    right = mlp(state.learned.critic.goal, seen[:, 5:])
    distance = np.sqrt(((left[:, None] - right[None]) ** 2).sum(-1) + 1e-8)
    logits = torch.tensor(left @ right.T if energy == "product" else -distance)
    cross_entropy = torch.nn.functional.cross_entropy(logits, torch.arange(32))
    expected = float(cross_entropy + 0.1 * (torch.logsumexp(logits, 1) ** 2).mean())
    loss, numbers = jax.jit(learner.critic_loss)(state.learned, state.learned.critic, batch, jax.random.key(0))
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    assert float(numbers["cross_entropy"]) == pytest.approx(float(cross_entropy), rel=1e-4)
    value = learner.value(state.learned, batch.observation, batch.action, batch.hindsight)
    np.testing.assert_allclose(value, logits.diagonal().numpy(), rtol=1e-3, atol=1e-4)


def test_the_papers_constants():
    assert (Contrastive().representation, Contrastive().penalty) == (64, 0.1)
    pair = Contrastive().init_critic(jax.random.key(0), SPACE)[0]
    assert pair.goal.layers[-1].weight.shape == (256, 64)


def test_it_has_no_signal():
    learner = Contrastive(**SMALL)
    with pytest.raises(ValueError, match="no TD error"):
        learner.update(
            learner.init(jax.random.key(0), SPACE, 4), random_episodes(0), jax.random.key(0), with_signal=True
        )


@pytest.mark.slow
def test_it_solves_a_tiny_problem():
    learner = Contrastive(hidden=(64, 64), batch=128, updates=32, learning_rate=1e-3, warmup=300)
    assert reach_rate(learner, 20) >= 0.9
