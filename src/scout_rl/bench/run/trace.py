"""The rows of a run, from a compact record or a run folder, and the first row that differs between two runs.

The key of a row is (windows closed after it, whether it is an evaluation); (0, False) is the ladder. A compact record
lacks the learner's numbers. Values that the stored run lacks are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import CompactRun
from scout_rl.records.evaluations import read_evaluations
from scout_rl.records.stored import read_curriculum, read_json, read_run, read_table
from scout_rl.records.tables import KINDS

Rows = dict[tuple[int, bool], dict[str, Any]]
ENTRY = {"frontier": "context", "outcome": "held-out context"}
"""What the entries of a list belong to; by default to rollouts."""
WORDS = {"environment_steps": "environment steps", "averages": "success averages behind the moves"}
SHOWN = 60


def record_rows(run: CompactRun, windows: int) -> Rows:
    """The rows of a compact record's first ``windows`` windows."""
    played: dict[str, NDArray[Any]] = {"context": run.context, "level": run.level, "success": run.success.astype(int)}
    events = ((window, [context, KINDS[kind]]) for window, context, kind in run.moves.tolist())
    evaluations = (
        {
            "window": window,
            "outcomes": run.outcomes[i].astype(int).tolist(),
            "success": float(run.outcomes[i].mean()),
            "groups": {name: float(values[i]) for name, values in run.groups.items()},
        }
        for i, window in enumerate(run.evaluated_at.tolist())
    )
    return _rows(
        [{name: array[w].tolist() for name, array in played.items()} for w in range(windows)],
        run.frontier,
        events,
        [{"environment_steps": steps} for steps in run.environment_steps[:windows].tolist()],
        evaluations,
        run.ladder,
    )


def folder_rows(folder: Path, windows: int) -> Rows:
    """The rows of a run folder's first ``windows`` windows; refuse a folder with fewer."""
    records, metrics = read_curriculum(folder), read_table(folder / "metrics.jsonl")
    for name, table in (("windows", records.windows), ("metrics", metrics)):
        if len(table) < windows:
            raise Refusal(f"{folder / name}.jsonl has {len(table)} rows, and {windows} windows are closed")
    numbers: list[dict[str, Any]] = [{**row, "averages": []} for row in metrics[:windows]]
    for event in records.events:
        if event.window < windows:
            numbers[event.window]["averages"].append(event.success_average)
    events = ((event.window, [event.context, event.kind]) for event in records.events)
    evaluations = read_evaluations(folder, read_run(folder), windows)
    ladder = read_json(folder / "ladder.json") if (folder / "ladder.json").exists() else None
    return _rows(records.windows[:windows], records.frontier, events, numbers, evaluations, ladder)


def _rows(
    played: list[dict[str, Any]],
    frontier: NDArray[Any] | None,
    events: Iterable[tuple[int, list[Any]]],
    numbers: list[dict[str, Any]],
    evaluations: Iterable[dict[str, Any]],
    ladder: dict[str, Any] | None,
) -> Rows:
    rows: Rows = {} if ladder is None else {(0, False): {"hash of its starts": ladder["sha256"]}}
    for w, (row, metrics) in enumerate(zip(played, numbers, strict=True)):
        levels = {} if frontier is None else {"frontier": frontier[w].tolist()}
        learner = {WORDS.get(name, f"the learner's {name}"): metrics[name] for name in metrics if name != "window"}
        cells = {name: row[name] for name in ("context", "level", "success")}
        signal = {"signal": row["signal"]} if "signal" in row else {}
        rows[w + 1, False] = {**cells, **levels, **signal, "moves": [], **learner}
    for window, move in events:
        if window < len(played):
            rows[window + 1, False]["moves"].append(move)
    for row in evaluations:
        if row["window"] <= len(played):
            groups = {f"success of group {name}": value for name, value in row["groups"].items()}
            rows[row["window"], True] = {"outcome": row["outcomes"], "success": row["success"], **groups}
    return rows


def windows_in(folder: Path) -> int:
    """Complete windows of a run folder; a window's row in timing.jsonl is written last."""
    path = folder / "timing.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def first_difference(stored: Rows, now: Rows, windows: int) -> str | None:
    """A sentence about the first difference within ``windows`` windows, or None."""
    for key in sorted(key for key in stored.keys() | now.keys() if key[0] <= windows):
        if key not in now:
            return f"{_where(*key)} is in the record and not there now"
        if key not in stored:
            return f"{_where(*key)} is there now and not in the record"
        for name, value in stored[key].items():
            if not _equal(value, now[key].get(name)):
                return f"{_where(*key)}: {_differing(name, value, now[key].get(name))}"
    return None


def _where(closed: int, is_evaluation: bool) -> str:
    if is_evaluation:
        return f"the evaluation after {closed} windows"
    return f"window {closed - 1}" if closed else "the ladder"


def _equal(stored: Any, now: Any) -> bool:
    return json.dumps(stored) == json.dumps(now)  # so NaN equals NaN


def _differing(name: str, stored: Any, now: Any) -> str:
    """``level of rollout 5 is 4 in the record and 3 now``."""
    if isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now) and name != "moves":
        i = next(i for i, pair in enumerate(zip(stored, now, strict=True)) if not _equal(*pair))
        return f"{name} of {ENTRY.get(name, 'rollout')} {i} is {stored[i]} in the record and {now[i]} now"
    is_or_are = "are" if isinstance(stored, list) else "is"
    return f"{name} {is_or_are} {_short(stored)} in the record and {_short(now)} now"


def _short(value: Any) -> str:
    text = "none" if value in (None, []) else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
