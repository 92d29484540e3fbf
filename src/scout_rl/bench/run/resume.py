"""Where a run that was begun goes on: at the newest checkpoint that is whole and that every table reaches.

Nothing is touched in here, so that what is refused stays as it is. A run that never came to its first checkpoint
begins again: it has nothing that is not made again exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.checkpoint import Checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import METRICS, TIMING, RunFolder
from scout_rl.curriculum.snapshot import digest
from scout_rl.files.damage import reading
from scout_rl.records.evaluations import due
from scout_rl.records.stored import RUN, read_json
from scout_rl.records.tables import CONFIG, EVALUATIONS, EVENTS, FRONTIER, WINDOWS, read_rows

ADVICE = "nothing was changed; move the folder away, or choose another (--out)"


class Start(NamedTuple):
    """Where it goes on."""

    found: Checkpoint | None
    """None: at the very beginning."""
    finished: bool = False
    """All of its records are there, and no checkpoint that could be continued."""


class Held(NamedTuple):
    """What the tables of a run hold."""

    reach: dict[str, int]
    """Windows, from the first on and without a gap, by table; -1 where not even the first evaluation is there."""
    last: int
    """Windows that any of them knows of."""
    rows: list[dict[str, Any]]
    """Of the windows."""


def find_start(folder: RunFolder, config: RunConfig, say: Callable[[str], None]) -> Start:
    """The checkpoint to continue from, or a refusal of what would lose records."""
    path = folder.path
    if not any((path / name).exists() for name in (WINDOWS, EVENTS, FRONTIER, METRICS, EVALUATIONS)):
        if checkpoint.kept(folder.checkpoints):
            raise ValueError(f"{path} cannot be continued: it has checkpoints, but no tables; {ADVICE}")
        return Start(None)
    if folder.there is None:
        raise ValueError(f"{path} holds records, but no {RUN} that says what made them; {ADVICE}")
    held = look(path, config)
    passed: list[str] = []
    for found in checkpoint.whole(folder.checkpoints, config.identity, say):
        short = _short(path, held, found)
        if short is None:
            for sentence in passed:
                say(f"{sentence}; falling back to the one before it")
            return Start(found)
        passed.append(f"checkpoint {folder.checkpoints / f'{found.window:08d}'} cannot be used: {short}")
    if min(held.reach.values()) >= config.windows:
        return Start(None, finished=True)
    saved = checkpoint.kept(folder.checkpoints)
    if not saved and held.last <= max(folder.there["config"].get("checkpoint_every", 0), config.checkpoint_every):
        say(f"{path} was stopped before its first checkpoint: it begins again")
        return Start(None)
    why = passed[-1] if passed else "none of its checkpoints is whole" if saved else "it has no checkpoint"
    raise ValueError(f"{path} holds {held.last} windows, and cannot be continued: {why}; {ADVICE}")


def look(path: Path, config: RunConfig) -> Held:
    """Read every table; one with wrong bytes is named."""
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
        reach[EVENTS] = _moves_noted(path / EVENTS, levels, config.windows)
    return Held(reach, last, read_rows(path / WINDOWS))


def _short(path: Path, held: Held, found: Checkpoint) -> str | None:
    """What the tables lack for a checkpoint."""
    for name, windows in held.reach.items():
        if windows < found.window:
            return f"{name} is whole for {max(windows, 0)} windows alone"
    told = found.meta["curriculum"].get("digest")  # earlier versions kept none
    played = ""
    with reading(path / WINDOWS):
        for row in held.rows[: found.window]:
            played = digest(played, row["context"], row["level"], row["success"])
    return f"{WINDOWS} holds other outcomes than it was made from" if told and told != played else None


def _in_order(path: Path, expected: list[int]) -> tuple[int, list[int]]:
    """How many rows are the expected ones, and the windows of those after them."""
    rows = read_rows(path)
    with reading(path):
        windows = [int(row["window"]) for row in rows]
    pairs = zip(windows, expected, strict=False)
    whole = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return whole, windows[whole:]


def _levels(path: Path, width: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    raw = np.fromfile(path, np.int8) if path.exists() else np.zeros(0, np.int8)
    return raw[: len(raw) // width * width].reshape(-1, width)


def _moves_noted(path: Path, levels: np.ndarray[Any, np.dtype[np.int8]], windows: int) -> int:
    """Windows before the first one that moved a frontier without an event."""
    rows = read_rows(path)
    with reading(path):
        noted = [(int(row["window"]), int(row["context"])) for row in rows]
    back = [after for (before, _), (after, _) in itertools.pairwise(noted) if after < before]
    moved = [(before + 1, context) for before, context in np.argwhere(levels[1:] != levels[:-1]).tolist()]
    known = set(noted)
    lost = [window for window, context in moved if (window, context) not in known]
    return min([*lost, *back, windows])
