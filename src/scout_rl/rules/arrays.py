"""The one place where NumPy and JAX differ: scatters, running maxima, partial sorts, loops.

Every rule is written once, with functions that both namespaces have. The rest is here. Arrays may have
leading axes (for example seeds): ``[..., contexts, levels]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from scout_rl.rules.cells import Array


def namespace(array: Array) -> Any:
    """Return ``numpy`` or ``jax.numpy``: the one that ``array`` (or the tracer) belongs to."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, jax.Array):
        return jax.numpy
    raise TypeError(f"a rule's state holds NumPy or JAX arrays, not {type(array).__name__}")


def count_kept(cell: Array, limit: int) -> int:
    """How many entries of the sorted ``cell`` to keep: NumPy keeps those below ``limit``, JAX (fixed shapes) all."""
    return int(cell.searchsorted(limit)) if namespace(cell) is np else len(cell)


def scatter_set(array: Array, index: Array, values: Array) -> Array:
    """``array`` (1-D) with ``values`` written at ``index``; on JAX an index past the end is ignored.

    Where an index repeats, its values must be equal: the order of writing is not fixed.
    """
    if namespace(array) is np:
        out = array.copy()
        out[index] = values
        return out
    return array.at[index].set(values, mode="drop")


def segment_sum(values: Array, segment: Array) -> Array:
    """The sum of ``values`` (1-D) per ``segment`` id. Ids are below ``len(values)``, the length of the result."""
    if namespace(values) is np:
        return np.bincount(segment, weights=values, minlength=len(values))
    return namespace(values).zeros_like(values).at[segment].add(values)


def running_max(array: Array) -> Array:
    """Return the largest value so far along the last axis."""
    if namespace(array) is np:
        return np.maximum.accumulate(array, axis=-1)
    from jax import lax

    return lax.cummax(array, axis=array.ndim - 1)


def kth_largest(array: Array, k: int) -> Array:
    """Return the k-th largest value along the last axis."""
    if namespace(array) is np:
        return np.partition(array, -k, axis=-1)[..., -k]
    return namespace(array).sort(array, axis=-1)[..., -k]


def while_loop(condition: Callable[[Array], Array], body: Callable[[Array], Array], value: Array) -> Array:
    """``while condition(value): value = body(value)``, traced on JAX."""
    if namespace(value) is np:
        while condition(value):
            value = body(value)
        return value
    from jax import lax

    return lax.while_loop(condition, body, value)


def active(level: Array, n_levels: int) -> Array:
    """Flat index of every context's cell ``(x, level[..., x])``, over all leading axes."""
    xp = namespace(level)
    return xp.arange(0, level.size * n_levels, n_levels).reshape(level.shape) + level


def take(cells: Array, index: Array) -> Array:
    """The values of ``cells`` (``[..., contexts, levels]``) at flat indices."""
    return cells.reshape(-1)[index]


def at_level(values: Array, level: Array, n_levels: int) -> Array:
    """Put ``values[..., x]`` into cell ``(x, level[..., x])``, 0 elsewhere: ``[..., contexts, levels]``."""
    xp = namespace(values)
    return xp.where(xp.arange(n_levels) == level[..., None], values[..., None], xp.zeros((), values.dtype))
