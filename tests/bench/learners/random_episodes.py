"""Episodes of unequal length with arbitrary content."""

import jax.numpy as jnp
import numpy as np

from scout_rl.bench.learners.episodes import Episodes
from scout_rl.bench.learners.ppo import Memory


def random_episodes(seed, n_steps=12, n_envs=6, lengths=(12, 1, 5, 12, 7, 2), failed=(0, 3)):
    """Episodes of given lengths that end in success, but for failed ones of full length; then garbage."""
    generator = np.random.default_rng(seed)
    valid = np.arange(n_steps)[:, None] < np.array(lengths)
    success = (np.arange(n_steps)[:, None] == np.array(lengths) - 1) & ~np.isin(np.arange(n_envs), failed)
    success |= ~valid & (generator.random(valid.shape) < 0.5)
    return Episodes(
        observation=jnp.asarray(generator.integers(0, 9, (n_steps, n_envs, 7, 7, 3)), jnp.uint8),
        action=jnp.asarray(generator.integers(0, 7, (n_steps, n_envs)), jnp.int32),
        memory=Memory(
            log_probability=jnp.asarray(np.log(generator.uniform(0.05, 0.3, (n_steps, n_envs))), jnp.float32),
            value=jnp.asarray(generator.normal(size=(n_steps, n_envs)), jnp.float32),
        ),
        success=jnp.asarray(success),
        valid=jnp.asarray(valid),
        final_observation=jnp.asarray(generator.integers(0, 9, (n_envs, 7, 7, 3)), jnp.uint8),
    )
