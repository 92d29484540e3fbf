"""The regularised incomplete beta function at a fixed cost, on every kind of array.

``I_x(a, b)`` for a, b >= 1 is the share of the Beta(a, b) density below x. The share and the whole are integrated with
the same tanh-sinh nodes, so no gamma function is needed. The density is divided by its value at the mode, and the range
is cut to where it is above exp(-40). 2 x 100 nodes give an error of 1e-10 for a + b from 2 to 1e6.
"""

from __future__ import annotations

import numpy as np

from scout_rl.rules.arrays import namespace
from scout_rl.rules.cells import Array

_STEPS = np.linspace(-3.4, 3.4, 100)
_TURN = np.pi / 2 * np.sinh(_STEPS)
_LEFT = 1 / (1 + np.exp(-2 * _TURN))
"""Node positions in (0, 1): dense at both ends, where the density may have a kink."""
_RIGHT = 1 / (1 + np.exp(2 * _TURN))
"""1 - _LEFT, without cancellation."""
_WEIGHT = np.pi / 2 * np.cosh(_STEPS) * 2 * _LEFT * _RIGHT * (_STEPS[1] - _STEPS[0])


def incomplete_beta(a: Array, b: Array, x: float) -> Array:
    """Return ``I_x(a, b)`` elementwise for arrays ``a, b >= 1`` and one ``x`` in 0..1."""
    xp = namespace(a)
    a, b = a[..., None], b[..., None]
    n, steep = a + b, (a - 1) + (b - 1)
    mode = xp.where(steep > 0, (a - 1) / xp.where(steep > 0, steep, 1.0), 0.5)
    mirrored = xp.where(steep > 0, (b - 1) / xp.where(steep > 0, steep, 1.0), 0.5)
    spread = 14 * xp.sqrt(a * b / (n * n * (n + 1))) + 80 / n
    low, high = xp.maximum(mode - spread, 0.0), xp.minimum(mode + spread, 1.0)
    cut = xp.clip(x, low, high)

    def mass(low: Array, high: Array) -> Array:
        """The density relative to its mode, integrated over low..high."""
        left, right, weight = (xp.asarray(v, dtype=a.dtype) for v in (_LEFT, _RIGHT, _WEIGHT))
        p, q = low + (high - low) * left, (1 - high) + (high - low) * right
        log_density = _times_log(a - 1, p, mode) + _times_log(b - 1, q, mirrored)
        return (xp.exp(log_density) * weight).sum(axis=-1) * (high - low)[..., 0]

    below, above = mass(low, cut), mass(cut, high)
    return below / (below + above)


def _times_log(power: Array, value: Array, reference: Array) -> Array:
    """``power * log(value/reference)``, 0 where the power is 0."""
    xp = namespace(power)
    tiny = xp.finfo(power.dtype).tiny
    ratio = xp.maximum(value, tiny) / xp.where(power > 0, xp.maximum(reference, tiny), 1.0)
    return xp.where(power > 0, power * xp.log(ratio), 0.0)
