"""Compact records: a run in one small file, as in `results/`. Tables and figures are made from them.

Kept: config, bank hash, versions, cells and success of every window, frontiers, moves, the outcome of every held-out
context at every evaluation, environment steps, seconds. Left out: the learner's losses and the success averages behind
the moves. A file holds only arrays, no pickle, in a few tens of KB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.files import archive
from scout_rl.files.atomic import write_bytes
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records.evaluations import check_means, check_times, read_evaluations
from scout_rl.records.stored import LADDER_SHAPE, check_run, read_curriculum, read_json, read_run, read_table
from scout_rl.records.tables import KINDS

SCHEMA = 1
_ABOUT = "about.json"
NOTE = {"run": {}, "group_names": [str], "rollouts": int, "held_out": int, "seconds": float}
ARRAYS = {
    **dict.fromkeys(("context", "level", "frontier", "moves"), ("i", 2)),
    **dict.fromkeys(("success", "outcomes"), ("u", 2)),
    **dict.fromkeys(("evaluated_at", "environment_steps"), ("i", 1)),
    "groups": ("f", 2),
}
"""The kind of number and the dimensions of each array."""


class CompactRun(NamedTuple):
    """One finished run."""

    about: dict[str, Any]
    """``run.json``: config, bank hash, versions."""
    context: NDArray[np.int16]
    level: NDArray[np.int8]
    success: NDArray[np.bool_]
    """``[windows, rollouts]`` each."""
    frontier: NDArray[np.int8] | None
    """``[windows, contexts]``, after each window."""
    moves: NDArray[np.int32]
    """``[moves, 3]``: window, context, index into KINDS."""
    evaluated_at: NDArray[np.int32]
    """``[evaluations]``: windows closed."""
    outcomes: NDArray[np.bool_]
    """``[evaluations, held-out contexts]``."""
    groups: dict[str, NDArray[np.float64]]
    """``[evaluations]`` each: held-out success by evaluation group."""
    environment_steps: NDArray[np.int64]
    """``[windows]``, cumulative."""
    seconds: float
    """Wall time of all windows."""
    ladder: dict[str, Any] | None
    """The source of a policy ladder per context, and its bootstrap fraction; None for other ladders."""


def pack(folder: Path, path: Path) -> None:
    """Write the compact record of a run; refuse one that is unfinished or inconsistent."""
    with reading(folder):
        arrays, note = _contents(folder)
    content = archive.pack(arrays, _ABOUT, note)
    with reading(folder, "cannot be packed: what comes out is damaged"):
        _parse(folder, content)
    write_bytes(path, content)


def _contents(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    about, records = read_run(folder), read_curriculum(folder)
    metrics, timing = read_table(folder / "metrics.jsonl"), read_table(folder / "timing.jsonl")
    budget = about["config"]["windows"]
    evaluations = read_evaluations(folder, about, min(len(records.windows), len(timing)))
    if len(records.windows) != budget or not evaluations or evaluations[-1]["window"] != budget:
        raise Refusal(f"{folder} has {len(records.windows)} of {budget} windows: only a finished run is packed")
    moves = [(event.window, event.context, KINDS.index(event.kind)) for event in records.events]
    arrays: dict[str, Any] = {
        "context": np.array([row["context"] for row in records.windows], np.int16),
        "level": np.array([row["level"] for row in records.windows], np.int8),
        "success": np.packbits(np.array([row["success"] for row in records.windows], bool), axis=1),
        "moves": np.array(moves, np.int32).reshape(-1, 3),
        "evaluated_at": np.array([row["window"] for row in evaluations], np.int32),
        "outcomes": np.packbits(np.array([row["outcomes"] for row in evaluations], bool), axis=1),
        "groups": np.array([list(row["groups"].values()) for row in evaluations]),
        "environment_steps": np.array([row["environment_steps"] for row in metrics], np.int64),
    }
    ladder = folder / "ladder.json"
    if records.frontier is not None:
        arrays["frontier"] = records.frontier
    note = {
        "compact_schema": SCHEMA,
        "run": about,
        "group_names": list(evaluations[0]["groups"]),
        "rollouts": len(records.windows[0]["context"]),
        "held_out": len(evaluations[0]["outcomes"]),
        "ladder": read_json(ladder) if ladder.exists() else None,
        "seconds": round(sum(row["seconds"] for row in timing), 1),
    }
    return arrays, note


def unpack(path: Path) -> CompactRun:
    """Read what `pack` wrote; refuse anything else."""
    if not path.exists():
        raise Refusal(f"{path} does not exist")
    with reading(path, "is no compact record, or a damaged one"):
        return _parse(path, path.read_bytes())


def _parse(path: Path, content: bytes) -> CompactRun:
    arrays, note = archive.unpack(content, _ABOUT)
    require_shape(note, NOTE)
    if note.get("ladder") is not None:
        require_shape(note["ladder"], LADDER_SHAPE, "'ladder'")
    for name, array in arrays.items():
        if (array.dtype.kind, array.ndim) != ARRAYS.get(name, (array.dtype.kind, array.ndim)):
            raise Refusal(f"its array {name!r} is {array.dtype}{list(array.shape)}")
    if note.get("compact_schema") != SCHEMA:
        raise Refusal(f"{path} has compact schema {note.get('compact_schema')!r}, this version reads {SCHEMA}")
    check_run(note["run"])
    run = CompactRun(
        about=note["run"],
        context=arrays["context"],
        level=arrays["level"],
        success=np.unpackbits(arrays["success"], axis=1, count=note["rollouts"]).astype(bool),
        frontier=arrays.get("frontier"),
        moves=arrays["moves"],
        evaluated_at=arrays["evaluated_at"],
        outcomes=np.unpackbits(arrays["outcomes"], axis=1, count=note["held_out"]).astype(bool),
        groups={name: arrays["groups"][:, i] for i, name in enumerate(note["group_names"])},
        environment_steps=arrays["environment_steps"],
        seconds=note["seconds"],
        ladder=note.get("ladder"),
    )
    _require_consistent(run)
    return run


def _require_consistent(run: CompactRun) -> None:
    """Refuse arrays that cannot come from one run."""
    windows, rollouts = run.context.shape
    frontier = run.level if run.frontier is None else run.frontier
    lengths = {len(array) for array in (run.level, run.success, frontier, run.environment_steps)}
    lengths.add(run.about["config"]["windows"])
    if lengths != {windows} or not windows:
        raise Refusal(f"its arrays have {', '.join(map(str, sorted(lengths | {windows})))} windows")
    if run.level.shape[1] != rollouts or run.success.shape[1] != rollouts:
        raise Refusal("its cells and their success are not of the same rollouts")
    lengths = {len(array) for array in (run.outcomes, *run.groups.values())}
    if lengths != {len(run.evaluated_at)} or run.moves.shape[1] != 3:
        raise Refusal("its evaluations or moves are cut")
    check_times(run.about["config"], run.evaluated_at.tolist(), windows)
    check_means(run.about, run.evaluated_at.tolist(), run.outcomes, run.groups)
