"""The frontier heat map of a run in a few KB; the page's script draws it.

A run with frontiers is stored as its moves, with the rollouts behind each. All contexts start at the easiest level, or
at ``start`` for records that begin in the middle of a run. A move changes one context by one level, or leads to ``to``
for a rule that skips levels. A run without frontiers, or with rollouts from other levels than these, is stored as the
mean level of its rollouts, in columns of windows.
Arrays are concatenated, deflated and written in base64; ``layout`` holds their names and lengths.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.metrics import RETREAT
from scout_rl.report.read.run import Rollouts, RunRecord
from scout_rl.report.read.statuses import window_statuses

RECENT = 10
"""A move is explained by this many rollouts before it, at the cell that was left."""
UNIT = 200
"""Success is stored in 200ths, mean levels in 200ths of the easiest level."""
NO_ROLLOUT = 255
Arrays = dict[str, NDArray[Any]]


def encode(run: RunRecord, *, detailed: bool) -> dict[str, Any]:
    """A run for the page; ``detailed`` adds every context's status in every window and finer columns."""
    arrays: Arrays = {"at": _small(run.evaluated_at)}
    for name, curve in run.held_out_groups.items():
        arrays[f"curve {name}"] = np.rint(curve * UNIT).astype(np.uint8)
    if run.context_group is not None and len(run.groups) > 1:
        arrays["group"] = run.context_group.astype(np.uint8)
    if run.frontier is not None:
        arrays |= _moves(run)
        if detailed and (statuses := window_statuses(run)) is not None:
            arrays |= _statuses(statuses)
    if run.frontier is None or _trains_elsewhere(run):
        arrays |= _columns(run, detailed=detailed)
    return packed(arrays)


def packed(arrays: Arrays, effort: int = 9) -> dict[str, Any]:
    """Flat unsigned arrays as the scripts of the pages read them; ``effort`` is that of the compression, 1 to 9."""
    layout = [[name, array.dtype.itemsize, len(array)] for name, array in arrays.items()]
    raw = b"".join(np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"))).tobytes() for a in arrays.values())
    return {"layout": layout, "data": base64.b64encode(zlib.compress(raw, effort)).decode()}


def evidence_of_moves(run: RunRecord) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Per move, at the cell that was left: number of outcomes, of the last ten or fewer, and of successes in these."""
    levels = run.about.n_levels
    cell = run.rollouts.context.astype(np.int64) * levels + run.rollouts.level
    order = np.argsort(cell, kind="stable")
    span = max(1, run.about.windows)
    keys = cell[order] * span + run.rollouts.window[order]
    won = np.concatenate(([0], np.cumsum(run.rollouts.success[order])))
    left = run.moves.context.astype(np.int64) * levels + run.moves.from_level
    first = np.searchsorted(keys, left * span)
    end = np.searchsorted(keys, left * span + run.moves.window, side="right")
    known = np.minimum(end - first, RECENT)
    return end - first, known, won[end] - won[end - known]


def _moves(run: RunRecord) -> Arrays:
    evidence, known, won = evidence_of_moves(run)
    start = _start(run)
    start_array = {"start": start.astype(np.uint8)} if (start != run.about.n_levels - 1).any() else {}
    assert run.frontier is not None
    to = run.frontier[run.moves.window, run.moves.context]  # a context moves once per window at most
    by_one = run.moves.from_level + np.where(run.moves.kind == RETREAT, 1, -1)
    to_array = {"to": to.astype(np.uint8)} if (to != by_one).any() else {}
    return {
        **start_array,
        **to_array,
        "steps": _small(np.diff(run.moves.window, prepend=0)),
        "context": _small(run.moves.context),
        "kind": run.moves.kind.astype(np.uint8),
        "evidence": _small(np.minimum(evidence, 65535)),
        "recent": (known * 16 + won).astype(np.uint8),
    }


def _start(run: RunRecord) -> NDArray[np.int8]:
    """Every context's level before the first recorded window."""
    if run.frontier is None or not len(run.frontier):
        return np.full(run.about.n_contexts, run.about.n_levels - 1, np.int8)
    start: NDArray[np.int8] = run.frontier[0].copy()
    at_once = run.moves.window == 0
    start[run.moves.context[at_once]] = run.moves.from_level[at_once]
    return start


def _trains_elsewhere(run: RunRecord) -> bool:
    """Whether a rollout started from another level than its context's frontier."""
    assert run.frontier is not None
    before = np.concatenate((_start(run)[None], run.frontier[:-1]))
    return bool((before[run.rollouts.window, run.rollouts.context] != run.rollouts.level).any())


def _statuses(statuses: NDArray[np.int8]) -> Arrays:
    """Run-length encoded, context by context."""
    flat = statuses.T.reshape(-1)
    starts = np.flatnonzero(np.diff(flat, prepend=-1))
    return {"status": flat[starts].astype(np.uint8), "length": np.diff(starts, append=len(flat)).astype(np.uint32)}


def _columns(run: RunRecord, *, detailed: bool) -> Arrays:
    """``[columns, contexts]``: mean level of the rollouts; detailed: also their number and successes."""
    width = -(-max(1, run.about.windows) // (120 if detailed else 30))
    columns, n = -(-max(1, run.about.windows) // width), run.about.n_contexts
    cell = (run.rollouts.window // width).astype(np.int64) * n + run.rollouts.context
    tried, won, mean = counted_levels(run.rollouts, cell, columns * n, run.about.n_levels)
    arrays: Arrays = {"width": np.array([width], np.uint16), "mean": mean}
    if detailed:
        arrays["tried"], arrays["won"] = _small(tried), _small(won)
    return arrays


def counted_levels(
    rollouts: Rollouts, cell: NDArray[np.int64], size: int, n_levels: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
    """Per cell of a map, ``[size]``: number of rollouts, successes, and the mean level as the pages draw it."""
    tried = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=rollouts.level, minlength=size) * (UNIT / max(1, n_levels - 1))
    mean = np.divide(total, tried, out=np.full(size, float(NO_ROLLOUT)), where=tried > 0)
    won = np.bincount(cell, weights=rollouts.success, minlength=size)
    return tried, won, np.minimum(np.rint(mean), NO_ROLLOUT).astype(np.uint8)


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest unsigned type."""
    high = int(values.max()) if len(values) else 0
    return values.astype(np.uint8 if high < 256 else np.uint16 if high < 65536 else np.uint32)
