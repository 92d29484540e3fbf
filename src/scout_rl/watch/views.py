"""What the page shows of one run: every function takes the run as read and returns JSON (`api.py` has the shapes)."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.records.level_colours import EASIEST, STOPS, TARGET
from scout_rl.records.tables import KINDS
from scout_rl.report.measure.metrics import worst_curve
from scout_rl.report.measure.stuck import REASONS, Stuck, cells
from scout_rl.report.read.run import Rollouts, RunRecord
from scout_rl.report.read.statuses import MEANING, WORDS
from scout_rl.report.show.heat import NO_ROLLOUT, UNIT, counted_levels, packed
from scout_rl.watch import words
from scout_rl.watch.follow import Opened
from scout_rl.watch.replay import Replay
from scout_rl.watch.rows import PACE, worst_of
from scout_rl.watch.waiting import Waits

MOST_CELLS = 2_400_000
"""Contexts x columns of a heat map: a large bank gets fewer columns."""
POINT = 64
"""Rollouts of a point of the training's success, if there are so many: a few would be noise."""
OUTCOMES = 2_000
"""Outcomes of a context that are sent."""
MOVES = 200
"""Events of a context that are sent."""
LONG = 4.0
"""A window that took this many medians longer than the median is a start or a pause."""


class Columns(NamedTuple):
    """Windows in columns of equal width, a power of two: so columns stay while a run grows."""

    width: int
    number: int
    at: NDArray[np.int64]
    """Windows closed at the end of each column, from the run's beginning."""

    @classmethod
    def of(cls, run: RunRecord, most: int) -> Columns:
        """At most ``most`` columns."""
        windows, width = run.about.windows, 1
        while -(-windows // width) > most:
            width *= 2
        count = -(-windows // width)
        ends = np.minimum((np.arange(count, dtype=np.int64) + 1) * width, windows)
        return cls(width, count, run.about.first + ends)


def about(run: RunRecord, row: dict[str, Any], pictures: list[str]) -> dict[str, Any]:
    """What a run is."""
    return {
        "row": row,
        "config": run.about.config,
        "versions": run.about.versions,
        "ran_on": run.about.ran_on,
        "groups": list(run.groups),
        "level": {"stops": STOPS, "target": TARGET, "easiest": EASIEST},
        "reasons": [[reason, meaning] for reason, meaning in REASONS.items()],
        "pictures": pictures,
    }


def heat(run: RunRecord, replay: Replay, budget: int | None, most: int, since: int) -> dict[str, Any]:
    """Contexts x columns."""
    a = run.about
    n = a.n_contexts
    columns = Columns.of(run, max(16, min(most, MOST_CELLS // max(1, n))))
    start = int(np.searchsorted(columns.at, since, side="right"))
    count = columns.number - start
    begin = int(np.searchsorted(run.rollouts.window, start * columns.width))
    rollouts = Rollouts._make(part[begin:] for part in run.rollouts)
    cell = (rollouts.window // columns.width - start).astype(np.int64) * n + rollouts.context
    tried, won, mean = counted_levels(rollouts, cell, count * n, a.n_levels)
    arrays: dict[str, NDArray[Any]] = {}
    if run.frontier is not None:
        rows = columns.at[start:] - a.first - 1
        arrays["frontier"] = run.frontier[rows].reshape(-1).astype(np.uint8)
    arrays["mean"] = mean
    whole = np.min_scalar_type(int(tried.max(initial=0)))
    arrays["tried"], arrays["won"] = tried.astype(whole), won.astype(whole)
    if run.context_group is not None:
        arrays["group"] = run.context_group.astype(np.uint8)
    arrays["now"], arrays["moved"] = _now(run)
    status = replay.statuses() if replay.done >= a.windows else None
    if status is not None:
        arrays["status"] = np.asarray(status).astype(np.uint8)
    return {
        **_span(run, budget),
        "generation": replay.generation,
        "contexts": n,
        "levels": a.n_levels,
        "width": columns.width,
        "column": start,
        "columns": count,
        "groups": list(run.groups) if run.context_group is not None else [],
        "unit": UNIT,
        "none": NO_ROLLOUT,
        "words": [[word, MEANING[word]] for word in WORDS],
        **packed(arrays, effort=1),
    }


def _span(run: RunRecord, budget: int | None) -> dict[str, Any]:
    return {"windows": run.about.first + run.about.windows, "first": run.about.first, "budget": budget}


def _now(run: RunRecord) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """``[contexts]``: level now, and the window of the last move + 1; of the last rollouts without a frontier."""
    now = np.full(run.about.n_contexts, NO_ROLLOUT, np.uint8)
    moved = np.zeros(run.about.n_contexts, np.uint32)
    if run.frontier is not None:
        if len(run.frontier):
            now = run.frontier[-1].astype(np.uint8)
        moved[run.moves.context] = run.moves.window + run.about.first + 1  # in order: the last one stays
        return now, moved
    now[run.rollouts.context] = run.rollouts.level
    moved[run.rollouts.context] = run.rollouts.window + run.about.first + 1
    return now, moved


def held_out(run: RunRecord) -> dict[str, Any]:
    """Held-out success."""
    groups = {name: _numbers(curve) for name, curve in run.held_out_groups.items()}
    worst = _numbers(worst_curve(run.held_out_groups)) if groups else []
    return {"at": run.evaluated_at.tolist(), "all": _numbers(run.held_out), "groups": groups, "worst": worst}


def curves(run: RunRecord, budget: int | None, most: int) -> dict[str, Any]:
    """Held-out success beside training success."""
    columns = Columns.of(run, most)
    last = worst_of({name: float(curve[-1]) for name, curve in run.held_out_groups.items() if len(curve)})
    of_all = np.ones(len(run.rollouts.level), bool)
    groups = {}
    if run.context_group is not None:
        labels = run.context_group[run.rollouts.context]
        groups = {name: _success(run, columns, labels == i) for i, name in enumerate(run.groups)}
    return {
        **_span(run, budget),
        "held_out": held_out(run),
        "worst_group": None if last is None else last["group"],
        "training": {
            "width": columns.width,
            "at": columns.at.tolist(),
            "all": _success(run, columns, of_all),
            "target": _success(run, columns, run.rollouts.level == 0),
            "groups": groups,
        },
    }


def _success(run: RunRecord, columns: Columns, which: NDArray[np.bool_]) -> list[float | None]:
    """Success of the chosen rollouts per column with one; where they are few, columns before it count too."""
    column = run.rollouts.window[which] // columns.width
    own = np.bincount(column, minlength=columns.number)
    tried = np.concatenate([[0], np.cumsum(own)])
    won = np.concatenate(
        [[0], np.cumsum(np.bincount(column, weights=run.rollouts.success[which], minlength=columns.number))]
    )
    start = np.maximum(np.searchsorted(tried, tried[1:] - POINT, side="right") - 1, 0)
    return _ratio(np.where(own > 0, won[1:] - won[start], 0), np.where(own > 0, tried[1:] - tried[start], 0))


def shares(run: RunRecord, replay: Replay, most: int) -> dict[str, Any]:
    """Rollouts by level, and the cells that teach nothing."""
    columns, levels = Columns.of(run, most), run.about.n_levels
    cell = (run.rollouts.window // columns.width).astype(np.int64) * levels + run.rollouts.level
    count = np.bincount(cell, minlength=columns.number * levels).reshape(columns.number, levels)
    total = count.sum(axis=1)
    by_level = [_numbers(row / n) if n else None for row, n in zip(count, total, strict=True)]
    return {
        "width": columns.width,
        "at": columns.at.tolist(),
        "levels": by_level,
        "teaching": {
            **replay.teaching(columns.at, run.about.first),
            "complete": replay.done >= run.about.windows,
            "progress": round(replay.done / max(1, run.about.windows), 3),
        },
    }


def events(opened: Opened, limit: int, skip: int, context: int | None) -> dict[str, Any]:
    """Moves and evaluations, the newest first."""
    run, columns = opened.record(), opened.event_columns()
    chosen = np.arange(len(columns["window"]))
    if context is not None:
        chosen = np.flatnonzero(columns["context"] == context)
    at = run.evaluated_at if context is None else run.evaluated_at[:0]
    # an evaluation after w windows comes behind the moves of window w - 1
    order = np.concatenate((columns["window"][chosen] * 2, at * 2 - 1))
    newest = np.argsort(order, kind="stable")[::-1][skip : skip + limit]
    return {
        "total": len(order),
        "events": [_move(columns, chosen[i]) if i < len(chosen) else _evaluation(run, i - len(chosen)) for i in newest],
    }


def _move(columns: dict[str, NDArray[Any]], i: int) -> dict[str, Any]:
    event = {name: column[i].item() for name, column in columns.items()}
    event["kind"] = KINDS[event["kind"]]
    for name, value in event.items():
        if isinstance(value, float):
            event[name] = None if np.isnan(value) else round(value, 4)
    return words.move(event)


def _evaluation(run: RunRecord, i: int) -> dict[str, Any]:
    groups = {name: float(curve[i]) for name, curve in run.held_out_groups.items()}
    return words.evaluation(int(run.evaluated_at[i]), groups)


def stuck(run: RunRecord, found: list[Stuck], replay: Replay, limit: int) -> dict[str, Any]:
    """Stuck contexts, those of the most frequent reason first, and what each waits for."""
    by_reason = Counter(entry.reason for entry in found)
    entries = sorted(found, key=lambda entry: (-by_reason[entry.reason], entry.reason, entry.context))
    waits = Waits(run, cells(run), replay)
    return {
        "windows": run.about.first + run.about.windows,
        "total": len(entries),
        "by_reason": dict(by_reason.most_common()),
        "contexts": [_stuck_entry(run, entry, waits) for entry in entries[:limit]],
    }


def _stuck_entry(run: RunRecord, entry: Stuck, waits: Waits) -> dict[str, Any]:
    wait = waits.of(entry.context, entry)
    return {
        "context": entry.context,
        "group": _group(run, entry.context),
        "level": _level(run, entry.context),
        "reason": entry.reason,
        "meaning": REASONS[entry.reason],
        "evidence": entry.evidence,
        "waits": wait.text,
        "windows": wait.windows,
    }


def _group(run: RunRecord, x: int) -> str:
    return "" if run.context_group is None else run.groups[run.context_group[x]]


def _level(run: RunRecord, x: int) -> int | None:
    """Its frontier, or the level of its last rollout."""
    if run.frontier is not None:
        return int(run.frontier[-1, x]) if len(run.frontier) else None
    mine = np.flatnonzero(run.rollouts.context == x)
    return int(run.rollouts.level[mine[-1]]) if len(mine) else None


def time_spent(opened: Opened, row: dict[str, Any], most: int) -> dict[str, Any]:
    """Throughput, and where the time goes."""
    run = opened.record()
    columns, windows = Columns.of(run, most), run.about.windows
    seconds = opened.seconds[:windows]
    pace = row["seconds_per_window"]
    rollouts = len(run.rollouts.window) / max(1, windows)
    answer: dict[str, Any] = {
        "source": "timing.jsonl" if len(seconds) else "file times" if pace is not None and windows else "",
        "seconds": float(run.about.seconds) if len(seconds) else None if pace is None else pace * windows,
        "seconds_per_window": pace,
        "rollouts_per_second": round(rollouts / pace, 2) if pace else None,
        "steps_per_second": None,
        "seconds_left": row["seconds_left"],
        "width": columns.width,
        "at": columns.at.tolist(),
        "per_window": [],
        "parts": [],
        "note": "Records of this kind hold no clock: the pace is that of the files' times." if not len(seconds) else "",
    }
    if not len(seconds):
        return answer
    column = np.arange(len(seconds)) // columns.width
    count = np.bincount(column, minlength=columns.number)
    answer["per_window"] = _ratio(np.bincount(column, weights=seconds, minlength=columns.number), count)
    recent = slice(max(0, len(seconds) - PACE), len(seconds))
    if len(run.steps_at) >= len(seconds) > 1 and seconds[recent][1:].sum() > 0:
        steps = np.diff(run.steps_at[recent])
        answer["steps_per_second"] = round(float(steps.sum() / seconds[recent][1:].sum()), 1)
    answer["parts"] = _parts(run, seconds)
    answer["note"] = (
        "Estimated: what a window took beyond the median of plain windows goes to the evaluation in it, "
        "or to the checkpoint before it; other long windows are the start or a pause."
    )
    return answer


def _parts(run: RunRecord, seconds: NDArray[np.float64]) -> list[dict[str, Any]]:
    number = run.about.first + np.arange(len(seconds))
    evaluated = np.isin(number + 1, run.evaluated_at)
    every = run.about.config.get("checkpoint_every", 0)
    saved = (number > 0) & (number % every == 0) if every else np.zeros(len(seconds), bool)
    plain = ~(evaluated | saved) & (number > run.about.first)
    usual = float(np.median(seconds[plain])) if plain.any() else float(np.median(seconds))
    extra = np.maximum(seconds - usual, 0.0)
    begun = (number == run.about.first) | (plain & (extra > LONG * usual))
    parts = {
        "windows": float(seconds.sum() - extra[evaluated | saved | begun].sum()),
        "evaluations": float(extra[evaluated & ~begun].sum()),
        "checkpoints": float(extra[saved & ~evaluated & ~begun].sum()),
        "start and pauses": float(extra[begun].sum()),
    }
    whole = max(sum(parts.values()), 1e-12)
    return [{"name": name, "seconds": round(part, 3), "share": round(part / whole, 4)} for name, part in parts.items()]


def context(
    opened: Opened, found: list[Stuck], replay: Replay, x: int, most: int, pictures: list[str]
) -> dict[str, Any]:
    """One context."""
    run = opened.record()
    columns, counted = Columns.of(run, most), cells(run)
    entry = next((entry for entry in found if entry.context == x), None)
    waits = Waits(run, counted, replay)
    wait = waits.of(x, entry)
    known = replay.chances()
    fresh = replay.done >= run.about.windows
    spoken = replay.words() if fresh else None
    mine = np.flatnonzero(run.rollouts.context == x)
    last = mine[-OUTCOMES:]
    frontier = [] if run.frontier is None else run.frontier[columns.at - run.about.first - 1, x].tolist()
    return {
        "context": x,
        "group": _group(run, x),
        "level": _level(run, x),
        "reason": "" if spoken is None else spoken[x],
        "meaning": "" if spoken is None else MEANING[spoken[x]],
        "stuck": None if entry is None else _stuck_entry(run, entry, waits),
        "waits": wait.text,
        "windows": wait.windows,
        "by_level": [
            {
                "level": level,
                "tried": int(counted.tried[x, level]),
                "won": int(counted.won[x, level]),
                "recent": _number(counted.recent[x, level]),
                "chance": _number(known.chance[x, level]),
                "low": None if known.low is None else _number(known.low[x, level]),
                "high": None if known.high is None else _number(known.high[x, level]),
            }
            for level in range(run.about.n_levels)
        ],
        "chance_source": replay.source,
        "chance_complete": fresh,
        "outcomes": {
            "window": (run.rollouts.window[last] + run.about.first).tolist(),
            "level": run.rollouts.level[last].tolist(),
            "success": run.rollouts.success[last].astype(int).tolist(),
            "total": len(mine),
        },
        "width": columns.width,
        "at": columns.at.tolist(),
        "frontier": frontier,
        "events": events(opened, MOVES, 0, x)["events"],
        "pictures": pictures,
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def _numbers(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 4) for value in values]


def _ratio(total: NDArray[Any], count: NDArray[Any]) -> list[float | None]:
    return [round(float(t / n), 4) if n else None for t, n in zip(total, count, strict=True)]
