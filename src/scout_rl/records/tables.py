"""What a run leaves behind: append-only files in one folder, readable without us.

    config.json     what was run: rule, constants, shape, seed, versions
    windows.jsonl   a row a window: its cells and their success
    events.jsonl    a row a frontier move
    frontier.int8   a row a window: one byte a context (rules with a frontier)
    evaluations.jsonl   a row per held-out evaluation, where the loop reports any

A window's row in ``windows.jsonl`` is written last. Whatever a crash left behind it is cut off when the folder is
opened again, and a curriculum restored to window w cuts the records back to w rows. docs/metrics.md lists every column.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.atomic import sync, write_bytes
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.rules.cells import Event

SCHEMA = 1
CONFIG, WINDOWS, EVENTS, FRONTIER = "config.json", "windows.jsonl", "events.jsonl", "frontier.int8"
EVALUATIONS = "evaluations.jsonl"
CONFIG_SHAPE = {
    "rule": {"key": str},
    "n_contexts": int,
    "n_levels": int,
    "window": int,
    "seed": int,
    "has_frontier": bool,
    "name": str,
    "versions": {...: str},
}
ROWS: dict[str, Any] = {
    WINDOWS: {"window": int, "context": [int], "level": [int], "success": [int], "signal": [float]},
    EVENTS: {
        "window": int,
        "context": int,
        "kind": str,
        "from_level": int,
        "to_level": int,
        "success_average": float,
        "evidence": float,
    },
    EVALUATIONS: {
        "window": int,
        "environment_steps": int,
        "success": float,
        "groups": {...: float},
        "outcomes": [float],
    },
    "metrics.jsonl": {"window": int, "environment_steps": int},
    "timing.jsonl": {"window": int, "seconds": float},
}
"""The shape of a row, by the table's file name."""


class Records(NamedTuple):
    """A folder's records, as read."""

    config: dict[str, Any]
    windows: list[dict[str, Any]]
    events: list[Event]
    frontier: NDArray[np.int8] | None
    """``[windows, contexts]``, after each window; None for rules without a frontier."""


class JsonLines:
    """One append-only table: a JSON object a line, with a ``window`` in each; half a line is cut off by `cut`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *rows: dict[str, Any]) -> None:
        """Write rows; their bytes are with the operating system when this returns."""
        _append(self.path, "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode())

    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    def rows(self) -> list[dict[str, Any]]:
        """Every complete row."""
        return read_rows(self.path)

    def cut(self, windows: int) -> None:
        """Keep only the rows before the first one of window ``windows`` or later."""
        size, lines = 0, _complete_lines(self.path)
        with reading(self.path):
            for line, row in zip(lines, parse_rows(lines, self.path.name), strict=True):
                if row["window"] >= windows:
                    break
                size += len(line)
        _truncate(self.path, size)


class RecordWriter:
    """Appends a curriculum's windows to a folder; opening it repairs what a crash left."""

    def __init__(self, folder: str | os.PathLike[str], config: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.config = config
        self.width = int(config["n_contexts"])
        self.has_frontier = bool(config["has_frontier"])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._claim()
        except OSError as error:
            raise Refusal(f"log_dir {self.folder} cannot be written: {error.strerror}") from error
        self._windows, self._events = JsonLines(self.folder / WINDOWS), JsonLines(self.folder / EVENTS)
        self.evaluations = JsonLines(self.folder / EVALUATIONS)
        rows = self._windows.rows()
        with reading(self._windows.path):
            self.first: int | None = rows[0]["window"] if rows else None
            self.windows = rows[-1]["window"] + 1 if rows else 0
        """The window that comes next in the file; 0 while the file is empty."""
        self._size = self._windows.size()
        kept = 0 if self.first is None else self.windows - self.first
        if self._frontiers() in (None, kept, kept + 1):  # else some of it was lost, and `cut` says what can be kept
            self.cut(self.windows)

    def append(
        self, window: int, row: dict[str, Any], events: Sequence[Event], frontier: NDArray[np.int8] | None
    ) -> None:
        """Write one closed window; all its bytes are with the operating system when this returns."""
        self._require_sole()
        if frontier is not None:
            _append(self.folder / FRONTIER, np.ascontiguousarray(frontier, np.int8).tobytes())
        if events:
            self._events.append(*(event._asdict() for event in events))
        self._windows.append(row)
        self._size = self._windows.size()
        self.first = window if self.first is None else self.first
        self.windows = window + 1

    def evaluate(self, row: dict[str, Any]) -> None:
        """Write one held-out evaluation, of the same contexts as those before it.

        A row of this window or a later one is from before a restore: it goes.
        """
        self._require_sole()
        self.evaluations.cut(row["window"])
        for first in self.evaluations.rows()[:1]:
            there, here = ((len(one["outcomes"]), sorted(one["groups"])) for one in (first, row))
            if there != here:
                raise ValueError(
                    f"the evaluation has {here[0]} contexts in {', '.join(here[1])}, and those in "
                    f"{self.evaluations.path} have {there[0]} in {', '.join(there[1])}: always play the same ones"
                )
        self.evaluations.append(row)

    def cut(self, windows: int) -> None:
        """Keep only the rows of windows before ``windows``; where some of those are lost, nothing is cut."""
        keep = 0 if self.first is None else max(0, min(windows, self.windows) - self.first)
        there = self._frontiers()
        if there is not None and (there < keep or (windows > self.windows and there > keep + 1)):
            raise Refusal(self._lost(there, keep))
        cut_records(self.folder, windows if keep else 0, frontier_bytes=keep * self.width)
        self.first = self.first if keep else None
        self.windows = min(windows, self.windows) if keep else 0
        self._size = self._windows.size()

    def rows(self) -> list[dict[str, Any]]:
        """The windows that are in the file."""
        return self._windows.rows()

    def check(self) -> None:
        """Refuse to go on after rows that are lost, or another's."""
        self._require_sole()
        there, kept = self._frontiers(), 0 if self.first is None else self.windows - self.first
        if there not in (None, kept):
            raise Refusal(self._lost(there, kept))

    def sync(self) -> None:
        """Have every row on the disk, before a state is that knows of them."""
        sync(self.folder / name for name in (CONFIG, WINDOWS, EVENTS, FRONTIER, EVALUATIONS))

    def _require_sole(self) -> None:
        if self._windows.size() != self._size:
            raise Refusal(f"log_dir {self.folder} is written by another curriculum too: give each a folder of its own")

    def _frontiers(self) -> int | None:
        """Whole rows of frontiers in their file; None for rules without one."""
        path = self.folder / FRONTIER
        return (path.stat().st_size if path.exists() else 0) // self.width if self.has_frontier else None

    def _lost(self, there: int | None, kept: int) -> str:
        return (
            f"log_dir {self.folder} has lost records: {FRONTIER} holds {there} windows, and {WINDOWS} {kept}; "
            "choose an empty folder"
        )

    def _claim(self) -> None:
        """Write the config into an empty folder, or refuse one that holds another curriculum's records."""
        path = self.folder / CONFIG
        if path.exists():
            there = _load_config(path)
            for name in ("rule", "n_contexts", "n_levels", "window", "seed", "name"):
                if there.get(name) != self.config.get(name):
                    raise Refusal(
                        f"log_dir {self.folder} holds records of another curriculum: {name} is {there.get(name)!r} "
                        f"there and {self.config.get(name)!r} here"
                    )
            return
        write_bytes(path, (json.dumps(self.config, indent=1) + "\n").encode())


def cut_records(folder: Path, windows: int, *, frontier_bytes: int) -> None:
    """Keep the rows of the windows before ``windows``, and so many bytes of frontiers."""
    for name in (WINDOWS, EVENTS):
        JsonLines(folder / name).cut(windows)
    _truncate(folder / FRONTIER, frontier_bytes)


def read_records(folder: str | os.PathLike[str]) -> Records:
    """Read a folder; rows that a crash left incomplete are not returned, and the files are not touched."""
    folder = Path(folder)
    if not (folder / CONFIG).exists():
        raise Refusal(f"{folder} holds no records: there is no {CONFIG} in it")
    config = _load_config(folder / CONFIG)
    windows = read_rows(folder / WINDOWS)
    for before, row in itertools.pairwise(windows):
        if row["window"] != before["window"] + 1:
            raise Refusal(
                f"{folder / WINDOWS} has window {row['window']} after {before['window']}: two runs wrote into it"
            )
    last = windows[-1]["window"] if windows else -1
    events = [Event(*(row[name] for name in Event._fields)) for row in read_rows(folder / EVENTS)]
    frontier = None
    if config["has_frontier"]:
        width = int(config["n_contexts"])
        path = folder / FRONTIER
        raw = np.fromfile(path, np.int8) if path.exists() else np.zeros(0, np.int8)
        if len(raw) < len(windows) * width:
            raise Refusal(f"{path} holds {len(raw) // width} windows, and {WINDOWS} {len(windows)}: it was cut or lost")
        frontier = raw[: len(windows) * width].reshape(-1, width)
    return Records(config, windows, [event for event in events if event.window <= last], frontier)


def _load_config(path: Path) -> dict[str, Any]:
    with reading(path):
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
        require_shape(config, CONFIG_SHAPE)
        if config.get("schema") != SCHEMA:
            raise Refusal(f"{path} has schema {config.get('schema')!r}, this version reads {SCHEMA}")
    return config


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Every complete row of a table; the file is not touched."""
    with reading(path):
        return parse_rows(_complete_lines(path), path.name)


def parse_rows(lines: Iterable[bytes], table: str) -> list[dict[str, Any]]:
    """The rows of a table's lines."""
    rows = []
    for i, line in enumerate(lines):
        row = json.loads(line)
        require_shape(row, ROWS.get(table, {}), f"row {i + 1}")
        rows.append(row)
    return rows


def _append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        left = memoryview(data)
        while left:  # a raw write may take a part and say nothing; the next one says that the disk is full
            left = left[file.write(left) :]


def _complete_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _truncate(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
