"""What the learner tests share: compiled functions, since compiling is what costs their time."""

import jax
import pytest

from scout_rl.bench.learners.ppo import PPO


@pytest.fixture(scope="session")
def ppo():
    return PPO(minibatch=16, row_fractions=(0.625, 1.0))


@pytest.fixture(scope="session")
def init(ppo):
    return jax.jit(ppo.init)


@pytest.fixture(scope="session")
def update(ppo):
    return jax.jit(ppo.update)
