"""The state of each planned run, read from its folder, its packed record and its list of failures.

OUT/SETTING/RULE/SEED/                         the run (bench/run/folder.py)
OUT/.campaign/SETTING/RULE/SEED.failures.json  why it failed, a row per failure; deleted when the run is finished
OUT/.campaign/SETTING/RULE/SEED.log            what its worker printed
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.run.config import RunConfig, difference
from scout_rl.bench.run.sources import with_stored_sources
from scout_rl.bench.run.store import Store
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records.compact import unpack
from scout_rl.records.stored import RUN
from scout_rl.records.tables import parse_rows
from scout_rl.rules.field_types import field_types, require_types

CHANCES = 3
"""Failures after which a run is left alone."""
_TAIL = 1 << 16


class Phase(StrEnum):
    """How far a run is."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"
    """Begun; continues from its newest checkpoint."""
    MISSING = "missing"
    FAILED = "failed"
    ELSEWHERE = "elsewhere"
    """Left to the process that trains it, or that trains what it needs."""


@dataclass(frozen=True)
class RunState:
    """The state of a run on disk."""

    phase: Phase
    windows: int = 0
    """Windows in its records."""
    note: str = ""
    """Why it failed, or another remark."""
    here: bool = field(default=False, compare=False)
    """Whether a worker of this campaign has just finished it."""


@dataclass(frozen=True)
class Pace:
    """The speed and success of a run, from its records."""

    windows: int
    seconds: float | None
    """Seconds per window: the median of the last fifty."""
    held_out: dict[str, float]
    """Success by evaluation group, at the last evaluation."""


def run_state(run: PlannedRun, store: Store, results: Path | None = None) -> RunState:
    """The state of one run, from its packed record, its folder and its failures."""
    total = run.config.windows
    if results is not None and (record := record_path(results, run)).exists():
        differs = _difference(unpack(record).about["config"], run, store)
        note = "" if differs is None else f"{record} is of another config: {differs}"
        return RunState(Phase.FINISHED, total, note)
    about = store.read(f"{run.name}/{RUN}")
    if about is not None:
        with reading(f"{store.url}/{run.name}/{RUN}"):
            stored = json.loads(about)
            require_shape(stored, {"config": {}})
            differs = _difference(stored.get("config", {}), run, store)
        if differs is not None:
            return RunState(Phase.FAILED, 0, f"{store.url}/{run.name} holds another run: {differs}")
    if is_finished(run, store):
        return RunState(Phase.FINISHED, total)
    windows = pace(run, store).windows
    failed = failures(run, store)
    if len(failed) >= CHANCES:
        return RunState(Phase.FAILED, windows, failed[-1]["error"])
    note = f"failed {len(failed)} of {CHANCES} times: {failed[-1]['error']}" if failed else ""
    return RunState(Phase.UNFINISHED if about is not None else Phase.MISSING, windows, note)


def is_finished(run: PlannedRun, store: Store) -> bool:
    """Whether a run has all windows, the last evaluation and the last checkpoint.

    A run without any checkpoint also counts as finished: it cannot be continued, and its records are complete.
    """
    total = run.config.windows
    evaluated = last_row(store, f"{run.name}/evaluations.jsonl")
    window = last_row(store, f"{run.name}/windows.jsonl")
    if evaluated.get("window") != total or window.get("window") != total - 1:
        return False
    saved = store.checkpoints(run.name)
    return total in saved or not saved


def record_path(results: Path, run: PlannedRun) -> Path:
    """The path of its compact record."""
    return results / f"{run.name}.npz"


def pace(run: PlannedRun, store: Store) -> Pace:
    """Windows, speed and held-out success so far, from the last rows of the records."""
    name = f"{run.name}/timing.jsonl"
    rows = _tail_rows(store, name)
    if not rows:
        return Pace(0, None, {})
    with reading(f"{store.url}/{name}"):
        windows, seconds = rows[-1]["window"] + 1, median(row["seconds"] for row in rows[-50:])
    return Pace(windows, seconds, last_row(store, f"{run.name}/evaluations.jsonl").get("groups", {}))


def known_pace(run: PlannedRun, store: Store) -> Pace | None:
    """As `pace`, but None where a table cannot be read."""
    try:
        return pace(run, store)
    except Refusal:
        return None


def last_row(store: Store, name: str) -> dict[str, Any]:
    """The last complete row of a table, or an empty row."""
    rows = _tail_rows(store, name, last=1)
    return rows[-1] if rows else {}


def failures(run: PlannedRun, store: Store) -> list[dict[str, Any]]:
    """The failures of a run, a row each."""
    content = store.read(_failures_file(run))
    with reading(f"{store.url}/{_failures_file(run)}"):
        rows: list[dict[str, Any]] = json.loads(content) if content else []
        require_shape(rows, [{"error": str}])
        if not all("error" in row for row in rows):
            raise Refusal("there is no 'error'")
    return rows


def add_failure(run: PlannedRun, store: Store, error: str, times: int = 1) -> None:
    """Add a failure, ``times`` times."""
    rows = [*failures(run, store), *[{"error": error, "windows": pace(run, store).windows}] * times]
    store.write(_failures_file(run), (json.dumps(rows, indent=1) + "\n").encode())


def forget_failures(run: PlannedRun, store: Store) -> None:
    """Delete the failures of a run, so that it is tried again."""
    store.delete(_failures_file(run))


def _failures_file(run: PlannedRun) -> str:
    return f".campaign/{run.name}.failures.json"


def _tail_rows(store: Store, name: str, last: int = 0) -> list[dict[str, Any]]:
    """The complete rows in the last bytes of a table."""
    data = store.read(name, _TAIL)
    lines = [line for line in (data or b"").splitlines(keepends=True) if line.endswith(b"\n")]
    if data is not None and len(data) >= _TAIL:
        lines = lines[1:]
    with reading(f"{store.url}/{name}"):
        return parse_rows(lines[-last:], name.rsplit("/", 1)[-1])


def _difference(stored: dict[str, Any], run: PlannedRun, store: Store) -> str | None:
    """How a stored config differs from this run's; other paths to the same ladder sources do not count."""
    return difference(_whole(stored), with_stored_sources(run.config.as_dict(), stored, store.url))


def _whole(config: dict[str, Any]) -> dict[str, Any]:
    """A stored config with defaults for newer fields; unchanged if this version cannot read it."""
    if "setting" not in config or config.keys() - field_types(RunConfig).keys():
        return config
    try:
        require_types(RunConfig, config)
        return RunConfig(**config).as_dict()
    except Refusal:
        return config
