"""From scores to a distribution: softmax with temperature, then the floor, then the cap.

All functions work on the last axis and keep the leading ones. To treat all cells as one axis, flatten
``[contexts, levels]`` first.
"""

from __future__ import annotations

from scout_rl.rules.arrays import cast, largest, namespace, while_loop
from scout_rl.rules.cells import Array


def softmax(score: Array, tau: float) -> Array:
    """``exp(score/tau)``, normalised."""
    xp = namespace(score)
    weight = xp.exp((score - largest(score, keepdims=True)) / tau)
    return weight / weight.sum(axis=-1, keepdims=True)


def floor_and_cap(p: Array, eps: float, q_max: float) -> Array:
    """Mix in the uniform floor ``eps``, then cap every entry at ``q_max``.

    The excess goes to the entries below the cap in proportion to their probability. This repeats until no entry
    exceeds the cap. Where ``entries*q_max < 1`` the cap cannot hold and the result is uniform. Ours: where all entries
    below the cap have probability 0, they share the excess evenly.
    """
    xp = namespace(p)
    n = p.shape[-1]
    if n * q_max < 1.0:
        return xp.full_like(p, 1.0 / n)
    p = (1.0 - eps) * p + eps / n

    def exceeds(p: Array) -> Array:
        return (p > q_max).any()

    def spread(p: Array) -> Array:
        capped = p >= q_max
        below = xp.where(capped, 0.0, p)
        room = 1.0 - q_max * capped.sum(axis=-1, keepdims=True)
        mass = below.sum(axis=-1, keepdims=True)
        free = n - capped.sum(axis=-1, keepdims=True)
        even = room / xp.where(free > 0, free, 1)
        scaled = xp.where(mass > 0, below * (room / xp.where(mass > 0, mass, 1.0)), even)
        return cast(xp.where(capped, q_max, scaled), p.dtype)

    most = min(n, int(1 / q_max) + 1)  # every round caps one more entry, and no more than 1 / q_max fit
    return while_loop(exceeds, spread, p, most)


def uniform(like: Array) -> Array:
    """Equal probability along the last axis of ``like``."""
    return namespace(like).full_like(like, 1.0 / like.shape[-1])
