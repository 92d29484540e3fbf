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
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):  # the first test is the quick one
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
    return put(array.copy() if namespace(array) is np else array, index, values)


def put(array: Array, index: Array, values: Array) -> Array:
    """`scatter_set` for an array that the caller owns: NumPy writes in place. ``array`` may have more axes."""
    if namespace(array) is np:
        array[index] = values
        return array
    return array.at[index].set(values, mode="drop")


def segment_sum(values: Array, segment: Array, length: int | None = None) -> Array:
    """The sum of ``values`` (1-D) per ``segment`` id, for the ids below ``length`` (``len(values)`` if None)."""
    length = len(values) if length is None else length
    if namespace(values) is np:
        return np.bincount(segment, weights=values, minlength=length)
    return namespace(values).zeros(length, values.dtype).at[segment].add(values, mode="drop")


def over_blocks(body: Callable[[Any, Any], Any], carry: Any, blocks: tuple[Array, ...]) -> Any:
    """``carry = body(carry, block)`` for every entry of the arrays' first axis, in order; traced once on JAX."""
    if namespace(blocks[0]) is np:
        for block in zip(*blocks, strict=True):
            carry = body(carry, block)
        return carry
    from jax import lax

    return lax.scan(lambda carry, block: (body(carry, block), None), carry, blocks)[0]


def running_max(array: Array) -> Array:
    """Return the largest value so far along the last axis."""
    if namespace(array) is np:
        return np.maximum.accumulate(array, axis=-1)
    from jax import lax

    return lax.cummax(array, axis=array.ndim - 1)


ROWS = 8192
"""Contexts per pass of `by_rows`: five levels of them fit into a processor's cache."""


def by_rows(function: Callable[..., tuple[Array, ...]], arrays: tuple[Array, ...], *shared: Array) -> tuple[Array, ...]:
    """``function(*arrays, *shared)``; on NumPy over slices of the contexts where a bank is large.

    The ``arrays`` and the results are ``[contexts, ...]`` then, and temporaries stay in the processor's cache.
    """
    n = len(arrays[0])
    if namespace(arrays[0]) is not np or arrays[0].ndim != 2 or n <= ROWS:
        return function(*arrays, *shared)
    results: list[Array] = []
    for rows in (slice(i, i + ROWS) for i in range(0, n, ROWS)):
        parts = function(*(a[rows] for a in arrays), *shared)
        results = results or [np.empty((n, *part.shape[1:]), part.dtype) for part in parts]
        for result, part in zip(results, parts, strict=True):
            result[rows] = part
    return tuple(results)


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


def apply_if(condition: Array, function: Callable[[Any], Any], value: Any) -> Any:
    """``function(value)`` where ``condition`` (a scalar) holds, else ``value``: a named tuple of arrays."""
    if namespace(condition) is np:
        return function(value) if condition else value
    from jax import lax

    return lax.cond(condition, function, lambda value: value, value)


def cast(array: Array, dtype: Any) -> Array:
    """``array`` with the type ``dtype``."""
    return array.astype(dtype)


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
