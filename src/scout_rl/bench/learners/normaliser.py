"""Running mean and deviation of inputs, updated once per window; part of the learner's state."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

Array = Any
SMALLEST_DEVIATION = 0.01
"""Keeps a coordinate that hardly changes from being blown up."""


class Normaliser(NamedTuple):
    """Statistics of rows with n coordinates.

    Means and squared differences are merged. Plain sums of squares would cancel in float32, since positions vary by
    centimetres around a metre.
    """

    count: Array
    mean: Array
    squares: Array
    """Sum of squared differences from the mean."""

    def update(self, rows: Array) -> Normaliser:
        """Add rows [m, n]."""
        m = jnp.float32(rows.shape[0])
        mean = rows.mean(0)
        squares = ((rows - mean) ** 2).sum(0)
        count = self.count + m
        difference = mean - self.mean
        return Normaliser(
            count, self.mean + difference * m / count, self.squares + squares + difference**2 * self.count * m / count
        )

    @property
    def deviation(self) -> Array:
        """Standard deviation; 1 before the first rows."""
        deviation = jnp.sqrt(self.squares / jnp.maximum(self.count, 1))
        return jnp.where(self.count > 0, jnp.maximum(deviation, SMALLEST_DEVIATION), 1.0)

    def __call__(self, rows: Array, clip: float) -> Array:
        """Rows [..., n] with mean 0 and deviation 1, within ``clip``."""
        return jnp.clip((rows - self.mean) / self.deviation, -clip, clip)


def fresh(n: int) -> Normaliser:
    """Without rows: it only clips its input."""
    return Normaliser(jnp.float32(0), jnp.zeros(n, jnp.float32), jnp.zeros(n, jnp.float32))
