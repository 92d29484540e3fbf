"""What several rules share: success averages, evidence and recency per cell.

A window's outcomes count in order. For a cell with k outcomes in the window, applying ``a <- keep*a + amount`` to
each gives ``keep**k * a + sum_j keep**later_j * amount_j``, where ``later_j`` counts the cell's outcomes after j.
This needs one sort and no loop, on every kind of array.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from scout_rl.rules.arrays import (
    all_true,
    cast,
    count_kept,
    namespace,
    order_of,
    rows,
    scatter_set,
    search,
    segment_sum,
)
from scout_rl.rules.cells import Array, Outcomes

ONE = np.int32(1)
"""A window more. NumPy 1 makes 64 bits of an int32 and a Python number."""


class Statistics(NamedTuple):
    """What the outcomes have shown so far, per cell: ``[..., contexts, levels]``."""

    window: Array
    """``[...]``: windows closed so far."""
    success: Array
    """``s``: exponential moving average of success; starts at 0."""
    evidence: Array
    """``n``: outcomes so far; does not decay."""
    last: Array
    """The window count when the cell last had an outcome; 0 before that."""


class Tally(NamedTuple):
    """One window's outcomes sorted by cell, flat over all leading axes. Every array has one entry per outcome."""

    cell: Array
    """Flat index of the outcome's cell; one past the last cell for invalid entries."""
    order: Array
    """The outcome's position in the flattened input."""
    segment: Array
    """The position of the cell's first outcome: the id of the cell's entries."""
    later: Array
    """How many outcomes of the same cell come after this one."""
    count: Array
    """How many outcomes the cell has in this window."""


def init_statistics(n_rows: int, n_levels: int) -> Statistics:
    """Return the statistics of ``n_rows`` contexts (or groups) before any outcome."""
    shape = (n_rows, n_levels)
    return Statistics(np.int32(0), np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape, np.int32))


def tally(outcomes: Outcomes, shape: tuple[int, ...]) -> Tally:
    """Sort the outcomes by cell; ``shape`` is that of the cells, ``[..., contexts, levels]``."""
    xp = namespace(outcomes.context)
    n_rows, n_levels = shape[-2:]
    cell = outcomes.context * n_levels + outcomes.level
    if len(shape) > 2:
        lead = xp.arange(math.prod(shape[:-2])).reshape(shape[:-2])
        cell = cell + lead[..., None] * (n_rows * n_levels)
    n_cells = math.prod(shape)
    if not all_true(outcomes.valid):
        cell = xp.where(outcomes.valid, cell, n_cells)
    cell = cell.reshape(-1)
    order = order_of(cell)
    cell = cell[order]
    kept = count_kept(cell, n_cells)
    cell, order = cell[:kept], order[:kept]
    first, end = search(cell, cell, "left"), search(cell, cell, "right")
    return Tally(cell, order, first, end - xp.arange(1, kept + 1), end - first)


def fold(array: Array, t: Tally, amount: Array, keep: float) -> Array:
    """Apply ``a <- keep*a + amount`` for every outcome in order, at the outcome's cell.

    ``array`` is ``[..., contexts, levels]``. ``amount`` has one entry per outcome, in the input's order.
    """
    flat = array.reshape(-1)
    amount = cast(amount.reshape(-1)[t.order], array.dtype)
    added = segment_sum(amount * keep ** cast(t.later, array.dtype), t.segment)[t.segment]
    new = keep ** cast(t.count, array.dtype) * rows(flat, t.cell) + added
    return scatter_set(flat, t.cell, new).reshape(array.shape)


def observe(statistics: Statistics, t: Tally, success: Array, beta: float) -> Statistics:
    """Spec section 4, steps 2 and 3: ``s <- (1-beta)*s + beta*r``, ``n <- n+1``, and recency of the sampled cells."""
    window = statistics.window + ONE
    shape = statistics.evidence.shape
    evidence, last = statistics.evidence.reshape(-1), statistics.last.reshape(-1)
    now = window if window.ndim == 0 else window.reshape(-1)[t.order // success.shape[-1]]
    return Statistics(
        window,
        fold(statistics.success, t, cast(success, statistics.success.dtype) * beta, 1.0 - beta),
        scatter_set(evidence, t.cell, rows(evidence, t.cell) + cast(t.count, evidence.dtype)).reshape(shape),
        scatter_set(last, t.cell, now).reshape(shape),
    )


def recency(statistics: Statistics) -> Array:
    """``c``: windows since each cell was last sampled, or since the start."""
    return statistics.window[..., None, None] - statistics.last
