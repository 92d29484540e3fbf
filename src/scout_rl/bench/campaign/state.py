"""What is left of each run, worked out from the run folders themselves, the packed records, and a list of failures.

OUT/SETTING/RULE/SEED/                         the run (bench/run/folder.py)
OUT/.campaign/SETTING/RULE/SEED.failures.json  why it failed, a row a time; gone when the run is finished
OUT/.campaign/SETTING/RULE/SEED.log            what its worker printed
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

from scout_rl.bench.campaign.file import Run
from scout_rl.bench.run.config import RunConfig, difference
from scout_rl.bench.run.sources import with_current_sources
from scout_rl.bench.run.store import Store
from scout_rl.files.damage import reading
from scout_rl.files.shape import require_shape
from scout_rl.records.compact import unpack
from scout_rl.records.stored import RUN
from scout_rl.records.tables import parse_rows
from scout_rl.rules.field_types import field_types, require_types

CHANCES = 3
"""Failures after which a run is left alone."""
_TAIL = 1 << 16


class State(StrEnum):
    """Of one run."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"
    """Begun; continues from its newest checkpoint."""
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """Where one run stands."""

    state: State
    windows: int = 0
    """Windows in its records."""
    note: str = ""
    """Why it failed, or what is odd about it."""


@dataclass(frozen=True)
class Pace:
    """What a run's records say of its speed and success."""

    windows: int
    seconds: float | None
    """A window, the median of the last fifty."""
    held_out: dict[str, float]
    """Success by evaluation group, at the last evaluation."""


def status(run: Run, store: Store, results: Path | None = None) -> Status:
    """Look at the packed record, the run folder and the failures of one run."""
    total = run.config.windows
    if results is not None and (record := record_path(results, run)).exists():
        return Status(State.FINISHED, total, _other(record, run, store))
    about = store.read(f"{run.name}/{RUN}")
    if about is not None:
        with reading(f"{store.url}/{run.name}/{RUN}"):
            stored = json.loads(about)
            require_shape(stored, {"config": {}})
            differs = _difference(stored.get("config", {}), run, store)
        if differs is not None:
            return Status(State.FAILED, 0, f"{store.url}/{run.name} holds another run: {differs}")
    if is_finished(run, store):
        return Status(State.FINISHED, total)
    windows = pace(run, store).windows
    found = failures(run, store)
    if len(found) >= CHANCES:
        return Status(State.FAILED, windows, found[-1]["error"])
    note = f"failed {len(found)} of {CHANCES} times: {found[-1]['error']}" if found else ""
    return Status(State.UNFINISHED if about is not None else State.MISSING, windows, note)


def is_finished(run: Run, store: Store) -> bool:
    """Whether all windows and the last evaluation are there, and the last checkpoint.

    One without any checkpoint counts as well: it cannot be continued, and its records are whole.
    """
    total = run.config.windows
    evaluated = last_row(store, f"{run.name}/evaluations.jsonl")
    window = last_row(store, f"{run.name}/windows.jsonl")
    if evaluated.get("window") != total or window.get("window") != total - 1:
        return False
    saved = store.checkpoints(run.name)
    return total in saved or not saved


def record_path(results: Path, run: Run) -> Path:
    """Where its compact record goes."""
    return results / f"{run.name}.npz"


def pace(run: Run, store: Store) -> Pace:
    """Windows, speed and held-out success so far, from the records' last rows."""
    name = f"{run.name}/timing.jsonl"
    rows = _rows(store, name)
    if not rows:
        return Pace(0, None, {})
    with reading(f"{store.url}/{name}"):
        windows, seconds = rows[-1]["window"] + 1, median(row["seconds"] for row in rows[-50:])
    return Pace(windows, seconds, last_row(store, f"{run.name}/evaluations.jsonl").get("groups", {}))


def known_pace(run: Run, store: Store) -> Pace | None:
    """The same for showing; None where a table cannot be read."""
    try:
        return pace(run, store)
    except ValueError:
        return None


def last_row(store: Store, name: str) -> dict[str, Any]:
    """The last complete row of a table, or an empty one."""
    rows = _rows(store, name, last=1)
    return rows[-1] if rows else {}


def failures(run: Run, store: Store) -> list[dict[str, Any]]:
    """Why it failed, a row a time."""
    kept = store.read(_failures(run))
    with reading(f"{store.url}/{_failures(run)}"):
        rows: list[dict[str, Any]] = json.loads(kept) if kept else []
        require_shape(rows, [{"error": str}])
    return rows


def add_failure(run: Run, store: Store, error: str, times: int = 1) -> int:
    """Note a failure; returns how many there are now."""
    rows = [*failures(run, store), *[{"error": error, "windows": pace(run, store).windows}] * times]
    store.write(_failures(run), (json.dumps(rows, indent=1) + "\n").encode())
    return len(rows)


def forget_failures(run: Run, store: Store) -> None:
    """Give a run its chances again."""
    store.delete(_failures(run))


def _failures(run: Run) -> str:
    return f".campaign/{run.name}.failures.json"


def _rows(store: Store, name: str, last: int = 0) -> list[dict[str, Any]]:
    """The complete rows in the last bytes of a table; the first of them may be cut."""
    data = store.read(name, _TAIL)
    lines = [line for line in (data or b"").splitlines(keepends=True) if line.endswith(b"\n")]
    if data is not None and len(data) >= _TAIL:
        lines = lines[1:]
    with reading(f"{store.url}/{name}"):
        return parse_rows(lines[-last:], name.rsplit("/", 1)[-1])


def _other(record: Path, run: Run, store: Store) -> str:
    """A sentence where the record under this run's name is not of this run; it is left as it is."""
    differs = _difference(unpack(record).about["config"], run, store)
    return "" if differs is None else f"{record} is of another config: {differs}"


def _difference(there: dict[str, Any], run: Run, store: Store) -> str | None:
    """In what a stored config is not this run's; how the sources of its ladder are spelled does not count."""
    here = run.config.as_dict()
    return difference(_whole(with_current_sources(there, here, store.url)), here)


def _whole(config: dict[str, Any]) -> dict[str, Any]:
    """A stored config with the fields that came after it at their defaults; as it is where it cannot be read today."""
    if "setting" not in config or config.keys() - field_types(RunConfig).keys():
        return config
    try:
        require_types(RunConfig, config)
        return RunConfig(**config).as_dict()
    except ValueError:
        return config
