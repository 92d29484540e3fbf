"""The frontier heat map of a run in a few KB, for the page's own script to draw.

A frontier is its moves: everything starts at the easiest level (or where ``start`` says, for records that begin in the
middle of a run), and a move changes one context by one level (or leads to where ``to`` says, for a rule that skips
levels). So a frontier run is stored as its moves with the rollouts behind each, and a run without one as the mean level
trained in columns of windows. Arrays are concatenated, deflated and written in base64; ``layout`` says how to cut them
apart.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.metrics import RETREAT
from scout_rl.report.read.replay import replay
from scout_rl.report.read.run import Run

RECENT = 10
"""A move's reason is told by this many rollouts before it, at the cell that was left."""
UNIT = 200
"""Success shares are stored as whole 200ths, mean levels as 200ths of the easiest level."""
NO_ROLLOUT = 255
Arrays = dict[str, NDArray[Any]]


def encode(run: Run, *, detailed: bool) -> dict[str, Any]:
    """What the page needs of a run; ``detailed`` adds every context's status in every window and finer columns."""
    arrays: Arrays = {"at": _small(run.evaluated_at)}
    for name, curve in run.held_out_groups.items():
        arrays[f"curve {name}"] = np.rint(curve * UNIT).astype(np.uint8)
    if run.context_group is not None and len(run.groups) > 1:
        arrays["group"] = run.context_group.astype(np.uint8)
    if run.frontier is not None:
        arrays |= _moves(run)
        if detailed and (status := replay(run)) is not None:
            arrays |= _statuses(status)
    else:
        arrays |= _columns(run, detailed=detailed)
    return {"layout": _layout(arrays), "data": _packed(arrays)}


def evidence_of_moves(run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For every move, at the cell that was left: outcomes so far, how many of the last ten exist and succeeded."""
    levels = run.about.n_levels
    cell = run.played.context.astype(np.int64) * levels + run.played.level
    order = np.argsort(cell, kind="stable")
    span = max(1, run.about.windows)
    keys = cell[order] * span + run.played.window[order]
    won = np.concatenate(([0], np.cumsum(run.played.success[order])))
    left = run.moves.context.astype(np.int64) * levels + run.moves.from_level
    first = np.searchsorted(keys, left * span)
    end = np.searchsorted(keys, left * span + run.moves.window, side="right")
    known = np.minimum(end - first, RECENT)
    return end - first, known, won[end] - won[end - known]


def _moves(run: Run) -> Arrays:
    evidence, known, won = evidence_of_moves(run)
    start = _start(run)
    begun = {"start": start.astype(np.uint8)} if (start != run.about.n_levels - 1).any() else {}
    assert run.frontier is not None
    to = run.frontier[run.moves.window, run.moves.context]  # a context moves once per window at most
    by_one = run.moves.from_level + np.where(run.moves.kind == RETREAT, 1, -1)
    skipping = {"to": to.astype(np.uint8)} if (to != by_one).any() else {}
    return {
        **begun,
        **skipping,
        "steps": _small(np.diff(run.moves.window, prepend=0)),
        "context": _small(run.moves.context),
        "kind": run.moves.kind.astype(np.uint8),
        "evidence": _small(np.minimum(evidence, 65535)),
        "recent": (known * 16 + won).astype(np.uint8),
    }


def _start(run: Run) -> NDArray[np.int8]:
    """Every context's level before the first recorded window."""
    if run.frontier is None or not len(run.frontier):
        return np.full(run.about.n_contexts, run.about.n_levels - 1, np.int8)
    start: NDArray[np.int8] = run.frontier[0].copy()
    at_once = run.moves.window == 0
    start[run.moves.context[at_once]] = run.moves.from_level[at_once]
    return start


def _statuses(status: NDArray[np.int8]) -> Arrays:
    """Run lengths, context by context."""
    flat = status.T.reshape(-1)
    starts = np.flatnonzero(np.diff(flat, prepend=-1))
    return {"status": flat[starts].astype(np.uint8), "length": np.diff(starts, append=len(flat)).astype(np.uint32)}


def _columns(run: Run, *, detailed: bool) -> Arrays:
    """``[columns, contexts]``: mean level of the rollouts and, detailed, how many there were and how many succeeded."""
    width = -(-max(1, run.about.windows) // (120 if detailed else 30))
    columns, n = -(-max(1, run.about.windows) // width), run.about.n_contexts
    cell = (run.played.window // width).astype(np.int64) * n + run.played.context
    count = np.bincount(cell, minlength=columns * n)
    total = np.bincount(cell, weights=run.played.level, minlength=columns * n)
    won = np.bincount(cell, weights=run.played.success, minlength=columns * n)
    mean = np.divide(
        total * (UNIT / max(1, run.about.n_levels - 1)),
        count,
        out=np.full(len(count), float(NO_ROLLOUT)),
        where=count > 0,
    )
    made: Arrays = {
        "width": np.array([width], np.uint16),
        "mean": np.minimum(np.rint(mean), NO_ROLLOUT).astype(np.uint8),
    }
    if detailed:
        made["tried"] = np.minimum(count, 255).astype(np.uint8)
        made["won"] = np.minimum(won, 255).astype(np.uint8)
    return made


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the smallest unsigned type."""
    high = int(values.max()) if len(values) else 0
    return values.astype(np.uint8 if high < 256 else np.uint16 if high < 65536 else np.uint32)


def _layout(arrays: Arrays) -> list[list[Any]]:
    return [[name, array.dtype.itemsize, len(array)] for name, array in arrays.items()]


def _packed(arrays: Arrays) -> str:
    raw = b"".join(np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"))).tobytes() for a in arrays.values())
    return base64.b64encode(zlib.compress(raw, 9)).decode()
