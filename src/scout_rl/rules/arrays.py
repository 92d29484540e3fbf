"""The one place where NumPy, JAX and torch differ: scatters, running maxima, sorts, casts, loops.

Every rule is written once, with functions that all namespaces have (torch's is `torch_arrays.py`). The rest is here.
Arrays may have leading axes (for example seeds): ``[..., contexts, levels]``.

What a rule must not rely on: torch divides whole numbers, and multiplies them with a Python float, in 32 bits. So
`cast` them to the state's type first. It subtracts no booleans.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from scout_rl.rules import torch_arrays
from scout_rl.rules.cells import Array
from scout_rl.rules.torch_arrays import TorchArrays


def namespace(array: Array) -> Any:
    """Return ``numpy``, ``jax.numpy`` or `TorchArrays`: the one that ``array`` (or the tracer) belongs to."""
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):  # the first test is the quick one
        return np
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, jax.Array):
        return jax.numpy
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return torch_arrays.on(array.device)
    raise TypeError(f"a rule's state holds NumPy, JAX or torch arrays, not {type(array).__name__}")


def count_kept(cell: Array, limit: int) -> int:
    """How many entries of the sorted ``cell`` to keep: NumPy keeps those below ``limit``; fixed shapes keep all."""
    return int(cell.searchsorted(limit)) if namespace(cell) is np else len(cell)


def all_true(array: Array) -> bool:
    """Whether all of ``array`` is true. False on JAX and torch, where the host does not know."""
    return namespace(array) is np and bool(array.all())


def scatter_set(array: Array, index: Array, values: Array) -> Array:
    """``array`` (1-D) with ``values`` written at ``index``; on JAX and torch an index past the end is ignored.

    Where an index repeats, its values must be equal: the order of writing is not fixed.
    """
    if is_jax(array):  # values that are computed while they are written need a copy of the array first
        from jax import lax

        values = lax.optimization_barrier(values)
    return put(copied(array), index, values)


def put(array: Array, index: Array, values: Array) -> Array:
    """`scatter_set` for an array that the caller owns: NumPy writes in place. ``array`` may have more axes."""
    xp = namespace(array)
    if xp is np:
        array[index] = values
        return array
    return xp.put(array, index, values) if isinstance(xp, TorchArrays) else array.at[index].set(values, mode="drop")


def rows(array: Array, index: Array) -> Array:
    """``array[index]`` for an index that may be past the end, where it gives anything."""
    if type(array) is np.ndarray:
        return array[index]
    xp = namespace(array)
    return xp.rows(array, index) if isinstance(xp, TorchArrays) else array[index]


SMALL = 4096
"""Entries of a table that JAX sums as a whole: one kernel, where a scatter is two or three."""


def segment_sum(values: Array, segment: Array, length: int | None = None) -> Array:
    """The sum of ``values`` (1-D) per ``segment`` id, for the ids below ``length`` (``len(values)`` if None)."""
    length, xp = len(values) if length is None else length, namespace(values)
    if xp is np:
        return np.bincount(segment, weights=values, minlength=length)
    if isinstance(xp, TorchArrays):
        return xp.segment_sum(values, segment, length)
    if length * len(values) <= SMALL:
        return xp.where(segment == xp.arange(length)[:, None], values, 0).sum(axis=-1)
    return xp.zeros(length, values.dtype).at[segment].add(values, mode="drop")


def is_jax(array: Array) -> bool:
    """Whether ``array`` is JAX's, or its tracer: some of its library's functions are many small kernels."""
    xp = namespace(array)
    return xp is not np and not isinstance(xp, TorchArrays)


def over_blocks(body: Callable[[Any, Any], Any], carry: Any, blocks: tuple[Array, ...]) -> Any:
    """``carry = body(carry, block)`` for every entry of the arrays' first axis, in order. JAX traces the body once."""
    if not is_jax(blocks[0]):
        for block in zip(*blocks, strict=True):
            carry = body(carry, block)
        return carry
    import jax

    return jax.lax.scan(lambda carry, block: (body(carry, block), None), carry, blocks)[0]


def running_max(array: Array) -> Array:
    """Return the largest value so far along the last axis."""
    xp = namespace(array)
    if xp is np:
        return np.maximum.accumulate(array, axis=-1)
    if isinstance(xp, TorchArrays):
        return array.cummax(dim=-1).values
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
    ordered = array.sort(dim=-1).values if not is_jax(array) else namespace(array).sort(array, axis=-1)
    return ordered[..., -k]


def largest(array: Array, keepdims: bool = False) -> Array:
    """The largest value along the last axis."""
    return array.max(axis=-1, keepdims=keepdims) if hasattr(array, "astype") else array.amax(-1, keepdim=keepdims)


def smallest(array: Array, keepdims: bool = False) -> Array:
    """The smallest value along the last axis."""
    return array.min(axis=-1, keepdims=keepdims) if hasattr(array, "astype") else array.amin(-1, keepdim=keepdims)


def order_of(array: Array) -> Array:
    """The indices that sort the last axis; equal values keep their order."""
    if type(array) is np.ndarray:
        return array.argsort(axis=-1, kind="stable")
    return array.argsort(axis=-1, stable=True) if is_jax(array) else array.argsort(dim=-1, stable=True)


def search(ordered: Array, values: Array, side: str) -> Array:
    """``searchsorted`` in one sorted axis; JAX's default would be a loop of small kernels."""
    if is_jax(ordered):
        return ordered.searchsorted(values, side=side, method="scan_unrolled")
    if hasattr(ordered, "searchsorted"):
        return ordered.searchsorted(values, side=side)
    return namespace(ordered).searchsorted(ordered, values, side=side)


def product(one: Array, other: Array) -> Array:
    """``one @ other`` of small matrices; JAX's own is one more kernel, and on a GPU it rounds to 10 bits."""
    if not is_jax(one):
        return one @ other
    return (one[..., :, :, None] * other[..., None, :, :]).sum(axis=-2)


UNROLLED = 16
"""Levels up to which JAX's `with_information` is written out."""


def with_information(C: Array, information: Array) -> Array:
    """``(1/C + diag(information))**-1`` for ``[runs, levels, levels]`` and ``[runs, levels]``.

    Solved for; JAX takes one level after the other instead: a library's solver is tens of kernels on a GPU.
    """
    xp, n_levels = namespace(C), C.shape[-1]
    if not is_jax(C) or n_levels > UNROLLED:
        return xp.linalg.solve(xp.asarray(_identity(n_levels), C.dtype) + C * information[:, None, :], C)
    for level in range(n_levels):
        column, i = C[:, :, level], information[:, level]
        C = C - (i / (1 + i * column[:, level]))[:, None, None] * (column[:, :, None] * column[:, None, :])
    return C


@functools.cache
def _identity(n: int) -> Any:
    return np.eye(n)


def diagonal(matrices: Array) -> Array:
    """The diagonals of the last two axes."""
    return matrices.diagonal(0, -2, -1)


def while_loop(condition: Callable[[Array], Array], body: Callable[[Array], Array], value: Array, most: int) -> Array:
    """``while condition(value): value = body(value)``, traced on JAX; it ends within ``most`` rounds.

    torch plays all of them, and keeps ``value`` where the condition does not hold: asking for it would wait.
    """
    xp = namespace(value)
    if isinstance(xp, TorchArrays):
        for _ in range(most):
            value = xp.where(condition(value), body(value), value)
        return value
    if xp is np:
        while condition(value):
            value = body(value)
        return value
    from jax import lax

    return lax.while_loop(condition, body, value)


def apply_if(condition: Array, function: Callable[[Any], Any], value: Any) -> Any:
    """``function(value)`` where ``condition`` (a scalar) holds, else ``value``: a named tuple of arrays."""
    xp = namespace(condition)
    if xp is np:
        return function(value) if condition else value
    if isinstance(xp, TorchArrays):
        return xp.select(condition, function(value), value)
    from jax import lax

    def once(carry: Any) -> Any:
        condition, value = carry
        return xp.zeros_like(condition), function(value)

    # A loop of at most one round: it writes in place what a branch of `lax.cond` would copy.
    return lax.while_loop(lambda carry: carry[0], once, (condition, value))[1]


def cast(array: Array, dtype: Any) -> Array:
    """``array`` with the type ``dtype``."""
    return array.astype(dtype) if hasattr(array, "astype") else array.to(dtype)


def copied(array: Array) -> Array:
    """A copy that the caller may write into with `put`; JAX and torch make theirs in `put`."""
    return array.copy() if namespace(array) is np else array


def active(level: Array, n_levels: int) -> Array:
    """Flat index of every context's cell ``(x, level[..., x])``, over all leading axes."""
    xp = namespace(level)
    return xp.arange(0, math.prod(level.shape) * n_levels, n_levels).reshape(level.shape) + level


def take(cells: Array, index: Array) -> Array:
    """The values of ``cells`` (``[..., contexts, levels]``) at flat indices; past the end: anything."""
    return rows(cells.reshape(-1), index)


def at_level(values: Array, level: Array, n_levels: int) -> Array:
    """Put ``values[..., x]`` into cell ``(x, level[..., x])``, 0 elsewhere: ``[..., contexts, levels]``."""
    xp = namespace(values)
    return xp.where(xp.arange(n_levels) == level[..., None], values[..., None], xp.zeros((), values.dtype))
