"""What a run did, moment by moment: the same value from a compact record and from a run folder, so that two runs can
be compared and their first difference named.

A moment is the ladder, a window or an evaluation. A compact record knows less of it than a folder, which also has the
learner's numbers; what the stored side does not have is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.records.compact import KINDS, CompactRun
from scout_rl.records.evaluations import read_evaluations
from scout_rl.records.stored import read_curriculum, read_json, read_run, read_table

ENTRY = {"frontier": "context", "outcome": "held-out context"}
"""What a list has one entry for; rollouts where nothing is said."""
SHOWN = 60


class Moment(NamedTuple):
    """One thing that happened."""

    place: str
    """``window 3``, ``the evaluation after 20 windows``, ``the ladder``."""
    closed: int
    """Windows that are closed after it."""
    values: dict[str, Any]
    """Numbers, or lists of them, by name."""


def of_record(run: CompactRun, windows: int) -> list[Moment]:
    """Of a compact record, up to a number of windows."""
    moves: list[list[list[Any]]] = [[] for _ in range(windows)]
    for window, context, kind in run.moves.tolist():
        if window < windows:
            moves[window].append([context, KINDS[kind]])
    played = [
        {
            "context": run.context[w].tolist(),
            "level": run.level[w].tolist(),
            "success": run.success[w].astype(int).tolist(),
            **_frontier(run.frontier, w),
            "moves": moves[w],
            "environment steps": int(run.environment_steps[w]),
        }
        for w in range(windows)
    ]
    evaluations = {
        window: _evaluation(
            run.outcomes[i].astype(int).tolist(),
            float(run.outcomes[i].mean()),
            {name: float(values[i]) for name, values in run.groups.items()},
        )
        for i, window in enumerate(run.evaluated_at.tolist())
    }
    return [*_ladder(run.ladder), *_in_order(played, evaluations)]


def of_folder(folder: Path, windows: int) -> list[Moment]:
    """Of a run folder, up to a number of windows; all of them must be there."""
    records, metrics = read_curriculum(folder), read_table(folder / "metrics.jsonl")
    for name, rows in (("windows", records.windows), ("metrics", metrics)):
        if len(rows) < windows:
            raise ValueError(f"{folder / name}.jsonl has {len(rows)} rows, and {windows} windows are closed")
    moves: list[list[Any]] = [[] for _ in range(windows)]
    for event in records.events:
        if event.window < windows:
            moves[event.window].append(event)
    played = []
    for w, (row, numbers) in enumerate(zip(records.windows[:windows], metrics[:windows], strict=True)):
        learner = {name: value for name, value in numbers.items() if name not in ("window", "environment_steps")}
        played.append(
            {
                **{name: row[name] for name in ("context", "level", "success")},
                **_frontier(records.frontier, w),
                "moves": [[event.context, event.kind] for event in moves[w]],
                "environment steps": numbers["environment_steps"],
                **({"signal": row["signal"]} if "signal" in row else {}),
                "success averages behind the moves": [event.success_average for event in moves[w]],
                **{f"the learner's {name}": value for name, value in learner.items()},
            }
        )
    rows = read_evaluations(folder, read_run(folder), windows)
    evaluations = {row["window"]: _evaluation(row["outcomes"], row["success"], row["groups"]) for row in rows}
    about = folder / "ladder.json"
    ladder = read_json(about) if about.exists() else None
    return [*_ladder(ladder), *_in_order(played, evaluations)]


def windows_in(folder: Path) -> int:
    """Windows of a run folder of which everything is written; the row of their time comes last."""
    path = folder / "timing.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def first_difference(stored: Sequence[Moment], now: Sequence[Moment], windows: int) -> str | None:
    """One sentence about the first moment, up to that many windows, in which the runs differ; None where none does."""
    found = {moment.place: moment.values for moment in now}
    there = {moment.place for moment in stored}
    extra = next((moment for moment in now if moment.place not in there and moment.closed <= windows), None)
    for moment in stored:
        if extra is not None and extra.closed < moment.closed:
            break
        if moment.closed > windows:
            break
        if moment.place not in found:
            return f"{moment.place} is in the record and not there now"
        for name, value in moment.values.items():
            other = found[moment.place].get(name)
            if not _equal(value, other):
                return f"{moment.place}: {_told(name, value, other)}"
    return None if extra is None else f"{extra.place} is there now and not in the record"


def _in_order(played: list[dict[str, Any]], evaluations: dict[int, dict[str, Any]]) -> Iterator[Moment]:
    for closed in range(len(played) + 1):
        if closed:
            yield Moment(f"window {closed - 1}", closed, played[closed - 1])
        if closed in evaluations:
            yield Moment(f"the evaluation after {closed} windows", closed, evaluations[closed])


def _evaluation(outcomes: list[int], success: float, groups: dict[str, float]) -> dict[str, Any]:
    means = {f"success of group {name}": value for name, value in groups.items()}
    return {"outcome": outcomes, "success": success, **means}


def _ladder(about: dict[str, Any] | None) -> list[Moment]:
    return [] if about is None else [Moment("the ladder", 0, {"hash of its starts": about["sha256"]})]


def _frontier(frontier: NDArray[np.int8] | None, window: int) -> dict[str, Any]:
    return {} if frontier is None else {"frontier": frontier[window].tolist()}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) or (one != one and other != other)  # not a number, both


def _told(name: str, stored: Any, now: Any) -> str:
    """``level of rollout 5 is 4 in the record and 3 now``."""
    plain = isinstance(stored, list) and not any(isinstance(value, list) for value in stored)
    if plain and isinstance(now, list) and len(stored) == len(now):
        i = next(i for i, (a, b) in enumerate(zip(stored, now, strict=True)) if not _equal(a, b))
        return f"{name} of {ENTRY.get(name, 'rollout')} {i} is {stored[i]} in the record and {now[i]} now"
    is_or_are = "are" if isinstance(stored, list) else "is"
    return f"{name} {is_or_are} {_short(stored)} in the record and {_short(now)} now"


def _short(value: Any) -> str:
    text = "none" if value in (None, []) else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
