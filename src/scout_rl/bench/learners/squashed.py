"""The tanh-Gaussian policy: a Gaussian squashed into (-1, 1), with exact log-probabilities."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
LOG_DEVIATION = (-5.0, 2.0)
"""Range of the Gaussian's log-deviation; the network's output is squashed into it."""


class Squashed(NamedTuple):
    """The distribution of tanh(u), u Gaussian with this mean and log-deviation [..., m]."""

    mean: Array
    log_deviation: Array

    def mode(self) -> Array:
        """tanh of the mean: the deterministic policy's action."""
        return jnp.tanh(self.mean)

    def sample(self, noise: Array) -> tuple[Array, Array]:
        """The action [..., m] that standard normal noise gives, and its log-probability [...]."""
        raw = self.mean + jnp.exp(self.log_deviation) * noise
        gaussian = -0.5 * noise**2 - self.log_deviation - 0.5 * math.log(2 * math.pi)
        squash = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))  # log(1 - tanh(raw)**2), without cancellation
        return jnp.tanh(raw), (gaussian - squash).sum(-1)


def squashed(output: Array) -> Squashed:
    """From a network's 2m outputs: means, then log-deviations before squashing."""
    mean, raw = jnp.split(output, 2, axis=-1)
    low, high = LOG_DEVIATION
    return Squashed(mean, low + 0.5 * (high - low) * (jnp.tanh(raw) + 1))
