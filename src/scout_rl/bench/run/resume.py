"""Where a run continues: at the newest whole checkpoint for which no table lacks rows.

This module only reads, so a refused folder stays as it is. A run without a checkpoint starts again and makes the same
rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.checkpoint import Checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import METRICS, TIMING, RunFolder
from scout_rl.curriculum.snapshot import digest
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.evaluations import due
from scout_rl.records.stored import RUN, read_json
from scout_rl.records.tables import CONFIG, EVALUATIONS, EVENTS, FRONTIER, WINDOWS, read_rows

ADVICE = "nothing was changed; move the folder away, or choose another (--out)"


class Start(NamedTuple):
    """Where a run starts or continues."""

    checkpoint: Checkpoint | None
    """None: at the beginning."""
    finished: bool = False
    """All records are complete, and no checkpoint is usable."""


class Tables(NamedTuple):
    """The content of a run's tables."""

    reach: dict[str, int]
    """Windows without a gap, by table; -1 where even the first evaluation is missing."""
    last: int
    """The most windows in any table."""
    rows: list[dict[str, Any]]
    """The rows of windows.jsonl."""


def find_starts(folder: RunFolder, config: RunConfig, say: Callable[[str], None]) -> Iterator[Start]:
    """Every place to continue from, at least one, the newest first; refuse if continuing would lose records."""
    path = folder.path
    if not any((path / name).exists() for name in (WINDOWS, EVENTS, FRONTIER, METRICS, EVALUATIONS)):
        if checkpoint.saved_windows(folder.checkpoints):
            raise Refusal(f"{path} cannot be continued: it has checkpoints, but no tables; {ADVICE}")
        yield Start(None)
        return
    if folder.stored is None:
        raise Refusal(f"{path} holds records, but no {RUN} that says what made them; {ADVICE}")
    tables = read_tables(path, config)
    unusable: list[str] = []
    any_usable = False
    for candidate in checkpoint.whole(folder.checkpoints, config.identity, say):
        gap = _gap(path, tables, candidate)
        if gap is None:
            for sentence in unusable:
                say(f"{sentence}; falling back to the one before it")
            unusable.clear()
            any_usable = True
            yield Start(candidate)
            continue
        unusable.append(f"checkpoint {folder.checkpoints / f'{candidate.window:08d}'} cannot be used: {gap}")
    if any_usable:
        return
    if min(tables.reach.values()) >= config.windows:
        yield Start(None, finished=True)
        return
    saved = checkpoint.saved_windows(folder.checkpoints)
    if not saved and tables.last <= max(folder.stored["config"].get("checkpoint_every", 0), config.checkpoint_every):
        say(f"{path} was stopped before its first checkpoint: it begins again")
        yield Start(None)
        return
    why = unusable[-1] if unusable else "none of its checkpoints is whole" if saved else "it has no checkpoint"
    raise Refusal(f"{path} holds {tables.last} windows, and cannot be continued: {why}; {ADVICE}")


def no_policy(path: Path, config: RunConfig) -> str:
    """What to say of a run that has all its records and no checkpoint."""
    return f"{path} is finished: all {config.windows} windows are there; without a checkpoint its policy is not"


def read_tables(path: Path, config: RunConfig) -> Tables:
    """Read every table of a run folder."""
    reach, last = {}, 0
    for name in (WINDOWS, METRICS, TIMING):
        whole, later = _in_order(path / name, list(range(config.windows)))
        reach[name] = min([whole, *later])
        last = max([last, whole, *(window + 1 for window in later)])
    times = due(config.windows, config.evaluate_every)
    whole, later = _in_order(path / EVALUATIONS, times)
    reach[EVALUATIONS] = min([config.windows, *(window - 1 for window in [*times[whole:], *later])])
    last = max([last, *times[:whole], *later])
    about = read_json(path / CONFIG)
    with reading(path / CONFIG):
        width = int(about["n_contexts"]) if about["has_frontier"] else 0
    if width:
        levels = _levels(path / FRONTIER, width)
        reach[FRONTIER], last = len(levels), max(last, len(levels))
        reach[EVENTS] = _windows_with_events(path / EVENTS, levels, config.windows)
    return Tables(reach, last, read_rows(path / WINDOWS))


def _gap(path: Path, tables: Tables, checkpoint: Checkpoint) -> str | None:
    """What the tables lack for a checkpoint, or None."""
    for name, windows in tables.reach.items():
        if windows < checkpoint.window:
            return f"{name} is whole for {max(windows, 0)} windows alone"
    expected = checkpoint.meta["curriculum"].get("digest")  # earlier versions kept none
    actual = ""
    with reading(path / WINDOWS):
        for row in tables.rows[: checkpoint.window]:
            actual = digest(actual, row["context"], row["level"], row["success"])
    return f"{WINDOWS} holds other outcomes than it was made from" if expected and expected != actual else None


def _in_order(path: Path, expected: list[int]) -> tuple[int, list[int]]:
    """How many first rows have the expected windows, and the windows of the rest."""
    rows = read_rows(path)
    with reading(path):
        windows = [int(row["window"]) for row in rows]
    pairs = zip(windows, expected, strict=False)
    whole = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return whole, windows[whole:]


def _levels(path: Path, width: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    raw = np.fromfile(path, np.int8) if path.exists() else np.zeros(0, np.int8)
    return raw[: len(raw) // width * width].reshape(-1, width)


def _windows_with_events(path: Path, levels: np.ndarray[Any, np.dtype[np.int8]], windows: int) -> int:
    """Windows before the first frontier move without an event."""
    rows = read_rows(path)
    with reading(path):
        events = [(int(row["window"]), int(row["context"])) for row in rows]
    back = [after for (before, _), (after, _) in itertools.pairwise(events) if after < before]
    moved = [(before + 1, context) for before, context in np.argwhere(levels[1:] != levels[:-1]).tolist()]
    known = set(events)
    lost = [window for window, context in moved if (window, context) not in known]
    return min([*lost, *back, windows])
