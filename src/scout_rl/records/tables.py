"""The records of a run: append-only files in one folder, readable without this package.

    config.json     what was run: rule, constants, shape, seed, versions
    windows.jsonl   a row per window: its cells and their success
    events.jsonl    a row per frontier move
    frontier.int8   a row per window: one byte per context (rules with a frontier)
    evaluations.jsonl   a row per held-out evaluation, where the loop reports any

A window's row in ``windows.jsonl`` is written last. Opening the folder again cuts off what a crash left incomplete. A
curriculum that is restored to window w cuts the records back to w rows. docs/metrics.md lists every column.
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
KINDS = ("advance", "retreat", "antistall")
"""The moves of a frontier; compact records hold an index into them."""
CONFIG, WINDOWS, EVENTS, FRONTIER = "config.json", "windows.jsonl", "events.jsonl", "frontier.int8"
EVALUATIONS = "evaluations.jsonl"
APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_encoded = json.JSONEncoder(separators=(",", ":")).encode
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
    """One append-only table: a JSON object per line, each with a ``window``. `cut` removes an incomplete line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *rows: dict[str, Any]) -> int:
        """Write rows and hand their bytes to the operating system; return how many."""
        data = "".join(_encoded(row) + "\n" for row in rows).encode()
        _append(self.path, data)
        return len(data)

    def size(self) -> int:
        """Bytes in the file."""
        return _size(self.path)

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
        self._frontier = self.folder / FRONTIER
        self.evaluations = JsonLines(self.folder / EVALUATIONS)
        rows = self._windows.rows()
        with reading(self._windows.path):
            self.first: int | None = rows[0]["window"] if rows else None
            self.windows = rows[-1]["window"] + 1 if rows else 0
        """The window that comes next in the file; 0 while the file is empty."""
        self._size = self._windows.size()
        kept = 0 if self.first is None else self.windows - self.first
        if self._frontiers() in (None, kept, kept + 1):  # else rows were lost: `cut` refuses
            self.cut(self.windows)

    def append(
        self, window: int, row: dict[str, Any], events: Sequence[Event], frontier: NDArray[np.int8] | None
    ) -> None:
        """Write one closed window and hand its bytes to the operating system. The caller has called `check`."""
        if frontier is not None:
            _append(self._frontier, frontier.astype(np.int8, copy=False).tobytes())
        if events:
            self._events.append(*(event._asdict() for event in events))
        self._size += self._windows.append(row)
        self.first = window if self.first is None else self.first
        self.windows = window + 1

    def evaluate(self, row: dict[str, Any]) -> None:
        """Write one held-out evaluation, of the same contexts as those before it.

        Rows of this window or later ones are from before a restore: they are removed.
        """
        self._require_sole()
        self.evaluations.cut(row["window"])
        for first in self.evaluations.rows()[:1]:
            stored, new = ((len(each["outcomes"]), sorted(each["groups"])) for each in (first, row))
            if stored != new:
                raise Refusal(
                    f"the evaluation has {new[0]} contexts in {', '.join(new[1])}, and those in "
                    f"{self.evaluations.path} have {stored[0]} in {', '.join(stored[1])}: always play the same ones"
                )
        self.evaluations.append(row)

    def cut(self, windows: int) -> None:
        """Keep the rows of windows before ``windows``; refuse, and cut nothing, where some of those are lost."""
        keep = 0 if self.first is None else max(0, min(windows, self.windows) - self.first)
        frontiers = self._frontiers()
        if frontiers is not None and (frontiers < keep or (windows > self.windows and frontiers > keep + 1)):
            raise Refusal(self._lost(frontiers, keep))
        cut_records(self.folder, windows if keep else 0, frontier_bytes=keep * self.width)
        self.first = self.first if keep else None
        self.windows = min(windows, self.windows) if keep else 0
        self._size = self._windows.size()

    def rows(self) -> list[dict[str, Any]]:
        """Every window in the file."""
        return self._windows.rows()

    def check(self) -> None:
        """Refuse to continue after rows were lost, or another curriculum wrote some."""
        self._require_sole()
        frontiers, kept = self._frontiers(), 0 if self.first is None else self.windows - self.first
        if frontiers not in (None, kept):
            raise Refusal(self._lost(frontiers, kept))

    def sync(self) -> None:
        """Flush every row to the disk: call it before saving a state that counts them."""
        sync(self.folder / name for name in (CONFIG, WINDOWS, EVENTS, FRONTIER, EVALUATIONS))

    def _require_sole(self) -> None:
        if self._windows.size() != self._size:
            raise Refusal(f"log_dir {self.folder} is written by another curriculum too: give each a folder of its own")

    def _frontiers(self) -> int | None:
        """Complete rows in the frontier file; None for rules without a frontier."""
        return _size(self._frontier) // self.width if self.has_frontier else None

    def _lost(self, frontiers: int | None, kept: int) -> str:
        return (
            f"log_dir {self.folder} has lost records: {FRONTIER} holds {frontiers} windows, and {WINDOWS} {kept}; "
            "choose an empty folder"
        )

    def _claim(self) -> None:
        """Write the config into an empty folder, or refuse one that holds another curriculum's records."""
        path = self.folder / CONFIG
        if path.exists():
            stored = _load_config(path)
            for name in ("rule", "n_contexts", "n_levels", "window", "seed", "name"):
                if stored.get(name) != self.config.get(name):
                    raise Refusal(
                        f"log_dir {self.folder} holds records of another curriculum: {name} is {stored.get(name)!r} "
                        f"there and {self.config.get(name)!r} here"
                    )
            return
        write_bytes(path, (json.dumps(self.config, indent=1) + "\n").encode())


def cut_records(folder: Path, windows: int, *, frontier_bytes: int) -> None:
    """Keep the rows of the windows before ``windows``, and ``frontier_bytes`` of the frontiers."""
    for name in (WINDOWS, EVENTS):
        JsonLines(folder / name).cut(windows)
    _truncate(folder / FRONTIER, frontier_bytes)


def read_records(folder: str | os.PathLike[str]) -> Records:
    """Read a folder without changing it; incomplete rows are skipped."""
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
        return parse_config(path.read_bytes(), path)


def parse_config(content: bytes, path: Path) -> dict[str, Any]:
    """The content of the config.json at ``path``, checked."""
    config: dict[str, Any] = json.loads(content.decode("utf-8"))
    require_shape(config, CONFIG_SHAPE)
    if config.get("schema") != SCHEMA:
        raise Refusal(f"{path} has schema {config.get('schema')!r}, this version reads {SCHEMA}")
    return config


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Every complete row of a table."""
    with reading(path):
        return parse_rows(_complete_lines(path), path.name)


def parse_rows(lines: Iterable[bytes], table: str) -> list[dict[str, Any]]:
    """The rows of a table's lines."""
    rows = []
    for i, line in enumerate(lines):
        row = json.loads(line)
        require_shape(row, ROWS.get(table, {}), f"row {i + 1}")
        if table == EVENTS and row.get("kind", KINDS[0]) not in KINDS:
            raise Refusal(f"there is no move {row['kind']}")
        rows.append(row)
    return rows


def _size(path: Path) -> int:
    """Bytes in a file; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _append(path: Path, data: bytes) -> None:
    handle = os.open(path, APPENDING, 0o666)
    try:
        while data:  # a raw write may silently take a part; the next one raises if the disk is full
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _complete_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _truncate(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
