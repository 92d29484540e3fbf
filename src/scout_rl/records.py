"""What a run leaves behind: append-only files in one folder, readable without us.

    config.json     what was run: rule, constants, shape, seed, versions
    windows.jsonl   a row a window: its cells and their success
    events.jsonl    a row a frontier move
    frontier.int8   a row a window: one byte a context (rules with a frontier)

A window's row in ``windows.jsonl`` is written last. Whatever a crash left behind it is cut off when the folder is
opened again, and a curriculum restored to window w cuts the records back to w rows. docs/metrics.md lists every column.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.cells import Event

SCHEMA = 1
CONFIG, WINDOWS, EVENTS, FRONTIER = "config.json", "windows.jsonl", "events.jsonl", "frontier.int8"


class Records(NamedTuple):
    """A folder's records, as read."""

    config: dict[str, Any]
    windows: list[dict[str, Any]]
    events: list[Event]
    frontier: NDArray[np.int8] | None
    """``[windows, contexts]``, after each window; None for rules without a frontier."""


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
            raise ValueError(f"log_dir {self.folder} cannot be written: {error.strerror}") from error
        first, rows = _read_complete_rows(self.folder / WINDOWS)
        self.first = first
        self.windows = 0 if first is None else first + rows
        """The window that comes next in the file; 0 while the file is empty."""
        self.cut(self.windows)

    def append(
        self, window: int, row: dict[str, Any], events: Sequence[Event], frontier: NDArray[np.int8] | None
    ) -> None:
        """Write one closed window; all its bytes are with the operating system when this returns."""
        lines = "".join(_event_line(event) for event in events)
        if frontier is not None:
            _append(self.folder / FRONTIER, np.ascontiguousarray(frontier, np.int8).tobytes())
        if lines:
            _append(self.folder / EVENTS, lines.encode())
        _append(self.folder / WINDOWS, (json.dumps(row, separators=(",", ":")) + "\n").encode())
        self.first = window if self.first is None else self.first
        self.windows = window + 1

    def cut(self, windows: int) -> None:
        """Keep only the rows of windows before ``windows``."""
        keep = 0 if self.first is None else max(0, min(windows, self.windows) - self.first)
        _keep_lines(self.folder / WINDOWS, keep)
        _keep_events(self.folder / EVENTS, windows if keep else 0)
        if self.has_frontier:
            _truncate(self.folder / FRONTIER, keep * self.width)
        if keep == 0:
            self.first, self.windows = None, 0
        else:
            self.windows = min(windows, self.windows)

    def _claim(self) -> None:
        """Write the config into an empty folder, or refuse one that holds another curriculum's records."""
        path = self.folder / CONFIG
        if path.exists():
            there = _load_config(path)
            for name in ("rule", "n_contexts", "n_levels", "window", "seed"):
                if there.get(name) != self.config.get(name):
                    raise ValueError(
                        f"log_dir {self.folder} holds records of another curriculum: {name} is {there.get(name)!r} "
                        f"there and {self.config.get(name)!r} here"
                    )
            return
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.config, indent=1) + "\n")
        os.replace(temporary, path)


def read_records(folder: str | os.PathLike[str]) -> Records:
    """Read a folder; rows that a crash left incomplete are not returned, and the files are not touched."""
    folder = Path(folder)
    if not (folder / CONFIG).exists():
        raise ValueError(f"{folder} holds no records: there is no {CONFIG} in it")
    config = _load_config(folder / CONFIG)
    windows = [json.loads(line) for line in _complete_lines(folder / WINDOWS)]
    last = windows[-1]["window"] if windows else -1
    events = [_event(json.loads(line)) for line in _complete_lines(folder / EVENTS)]
    frontier = None
    if config["has_frontier"]:
        width = int(config["n_contexts"])
        path = folder / FRONTIER
        raw = np.fromfile(path, np.int8) if path.exists() else np.zeros(0, np.int8)
        frontier = raw[: len(windows) * width].reshape(-1, width)
    return Records(config, windows, [event for event in events if event.window <= last], frontier)


def _load_config(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(path.read_text())
    if config.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {config.get('schema')!r}, this version reads {SCHEMA}")
    return config


def _event_line(event: Event) -> str:
    return json.dumps(event._asdict(), separators=(",", ":")) + "\n"


def _event(row: dict[str, Any]) -> Event:
    return Event(**row)


def _append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(data)


def _complete_lines(path: Path) -> Iterable[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _read_complete_rows(path: Path) -> tuple[int | None, int]:
    """Return the first row's window and the number of complete rows."""
    lines = list(_complete_lines(path))
    return (int(json.loads(lines[0])["window"]), len(lines)) if lines else (None, 0)


def _keep_lines(path: Path, n: int) -> None:
    lines = list(_complete_lines(path))
    _truncate(path, sum(len(line) for line in lines[:n]))


def _keep_events(path: Path, windows: int) -> None:
    size = 0
    for line in _complete_lines(path):
        if json.loads(line)["window"] >= windows:
            break
        size += len(line)
    _truncate(path, size)


def _truncate(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
