"""Follow the append-only records of one run by byte offset: what was read is not read again.

A table that was cut (a resumed run goes back to its checkpoint) or replaced is read from its beginning. A damaged row
stops its table there: the rows before it stay, and ``trouble`` names it in a sentence. Reading is done in steps, so
that a caller can stop after some milliseconds and go on later.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import KINDS
from scout_rl.records.stored import read_run
from scout_rl.records.tables import CONFIG, EVALUATIONS, EVENTS, FRONTIER, WINDOWS, parse_config, parse_rows
from scout_rl.report.read.run import Moves, Rollouts, RunRecord
from scout_rl.report.read.runs import assembled, described
from scout_rl.watch.disk import MOST, Signature, opened, read_small, read_span, signature

STEP = 2 << 20
"""Bytes that one step reads of a table."""
GUARD = 64
"""Bytes before the offset that must still be there: else the file was cut and has grown again."""
MEMORY = 256 << 20
"""Bytes of one run in memory. A longer run loses its oldest windows here, as if its records began later."""
METRICS, TIMING, RUN = "metrics.jsonl", "timing.jsonl", "run.json"


class Growing:
    """An array that grows at its end; ``values`` is the part in use."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._array: NDArray[Any] = np.zeros((1024,) if width is None else (64, width), dtype)
        self.length = 0

    @property
    def values(self) -> NDArray[Any]:
        """What was appended. It is a view: appending more leaves it as it is."""
        return self._array[: self.length]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._array.nbytes

    def append(self, new: NDArray[Any]) -> None:
        """Add entries."""
        end = self.length + len(new)
        if end > len(self._array):
            larger = np.zeros((max(end, 2 * len(self._array)), *self._array.shape[1:]), self._array.dtype)
            larger[: self.length] = self.values
            self._array = larger
        self._array[self.length : end] = new
        self.length = end

    def drop(self, count: int) -> None:
        """Forget the first entries, and free their memory; values that were handed out stay as they are."""
        self._array, self.length = self._array[count : max(self.length, count + 1)].copy(), self.length - count


class FollowedFile:
    """The complete lines of one growing file."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.rows = path, 0, 0
        """Bytes and rows that were read."""
        self._guard, self._inode = b"", 0
        self._wrong: tuple[bytes, Refusal] | None = None

    def read(self) -> tuple[bool, list[bytes]]:
        """Whether it was cut or replaced, so that it is read from the beginning; and the next complete lines."""
        try:
            with opened(self.path) as file:
                status = os.fstat(file)
                again = self.offset > 0 and (
                    status.st_ino != self._inode
                    or status.st_size < self.offset
                    or read_span(file, self.offset - len(self._guard), len(self._guard)) != self._guard
                )
                if again:
                    self.offset, self.rows, self._guard = 0, 0, b""
                self._inode = status.st_ino
                if self._wrong is not None:
                    line, refusal = self._wrong
                    if not again and read_span(file, self.offset, len(line)) == line:
                        raise refusal
                    self._wrong = None
                return again, self._lines(file, status.st_size)
        except FileNotFoundError:
            again, self.offset, self.rows, self._guard = self.offset > 0, 0, 0, b""
            return again, []

    def accept(self, lines: list[bytes]) -> None:
        """Go on behind these lines, the first that `read` returned."""
        if lines:
            self.offset += sum(map(len, lines))
            self.rows += len(lines)
            self._guard = (self._guard + b"".join(lines[-2:]))[-GUARD:]

    def refuse(self, line: bytes, refusal: Refusal) -> None:
        """Stop at this line, the next one, for as long as it stands there."""
        self._wrong = line, refusal
        raise refusal

    def _lines(self, file: int, size: int) -> list[bytes]:
        step = STEP
        while True:
            data = read_span(file, self.offset, min(step, size - self.offset))
            end = data.rfind(b"\n") + 1
            if end:
                return data[:end].splitlines(keepends=True)
            if len(data) < step:
                return []  # the writer is in the middle of its row
            if step >= MOST:
                raise Refusal(f"{self.path} is damaged: row {self.rows + 1} has more than {MOST:,} bytes")
            step *= 4


class FollowedRun:
    """The records of a run folder or a ``log_dir``, as far as they were read."""

    def __init__(self, folder: Path, memory: int = MEMORY) -> None:
        self.folder, self._memory = folder, memory
        self.trouble = ""
        """What is wrong with the folder, in a sentence."""
        self.version = 0
        """Grows whenever rows were added or cut."""
        self.generation = 0
        """Grows when windows were cut: what was computed from them is void."""
        self.complete = False
        """Whether everything that was on the disk at the last `advance` is read."""
        self._files = {name: FollowedFile(folder / name) for name in (WINDOWS, EVENTS, EVALUATIONS, METRICS, TIMING)}
        self._signature: Signature | None = None
        self._config: dict[str, Any] = {}
        self._description: dict[str, Any] = {}
        self._record: tuple[int, RunRecord] | None = None
        self._clear()

    # -- reading ---------------------------------------------------------------------------------------------------

    def advance(self, seconds: float = float("inf")) -> None:
        """Read what is new, for about this long; at least one step."""
        deadline = time.perf_counter() + seconds
        troubles = []
        try:
            self._describe()
        except FileNotFoundError:
            self.complete = True
            if self._config:
                self._lose("was deleted" if not self.folder.is_dir() else f"lost its {CONFIG}")
            else:
                self.trouble = f"{self.folder} has no {CONFIG} yet" if self.folder.is_dir() else ""
            return
        except Refusal as refusal:
            self.complete, self.trouble = True, str(refusal)
            return
        self.complete = True
        for name, take in (
            (WINDOWS, self._take_windows),
            (EVENTS, self._take_events),
            (EVALUATIONS, self._take_evaluations),
            (METRICS, self._take_metrics),
            (TIMING, self._take_timing),
        ):
            try:
                while self._advance_file(name, take):
                    if time.perf_counter() > deadline:
                        self.complete = False
                        break
            except Refusal as refusal:
                troubles.append(str(refusal))
            if not self.complete:
                break
        try:
            self._take_frontier()
        except (Refusal, FileNotFoundError) as error:
            troubles.append(str(error) if isinstance(error, Refusal) else f"{self.folder / FRONTIER} is lost")
        self.trouble = "; ".join(troubles)
        if self.nbytes > self._memory:
            self._drop(self._windows() // 2)

    def _drop(self, windows: int) -> None:
        """Forget the oldest windows, to stay within the memory."""
        rollouts = int(self._sizes.values[:windows].sum())
        for column, count in (
            *((column, rollouts) for column in (self._context, self._level, self._success)),
            (self._sizes, windows),
            *([(self._frontier, windows)] if self._config["has_frontier"] else []),
        ):
            column.drop(count)
        self.first, self._dropped = self.first + windows, self._dropped + windows
        early = int(np.searchsorted(self._events["window"].values, self.first))
        for column in self._events.values():
            column.drop(early)
        self.generation += 1
        self.version += 1

    def _lose(self, what: str) -> None:
        self.trouble = f"{self.folder} {what}: what was read before is shown"

    def _describe(self) -> None:
        """Read config.json (and run.json) once, and again when another run stands in the folder."""
        now = signature(self.folder / CONFIG)
        if now is not None and now == self._signature:
            return
        content = read_small(self.folder / CONFIG)
        with reading(self.folder / CONFIG):
            config = parse_config(content, self.folder / CONFIG)
        self._signature = now
        if config == self._config:
            return
        ours = (self.folder / RUN).exists()
        if ours:
            read_small(self.folder / RUN)  # refuses links and giants
        description = read_run(self.folder) if ours else described(config)
        if self._config:
            for name in self._files:
                self._files[name] = FollowedFile(self.folder / name)
            self.generation += 1
        self._config, self._description, self.kind = config, description, "folder" if ours else "log_dir"
        self._clear()

    def _clear(self) -> None:
        width = int(self._config.get("n_contexts", 1))
        self.kind = getattr(self, "kind", "log_dir")
        self.first, self._dropped = 0, 0
        self._sizes = Growing(np.int32)
        self._context, self._level, self._success = Growing(np.int32), Growing(np.int8), Growing(np.bool_)
        self._frontier = Growing(np.int8, width)
        self._events: dict[str, Growing] = _event_columns()
        self._evaluated: list[dict[str, Any]] = []
        self._steps, self._seconds = Growing(np.int64), Growing(np.float64)
        self.version += 1

    def _advance_file(self, name: str, take: Any) -> bool:
        """One step of one table; whether there may be more."""
        file = self._files[name]
        before = file.offset
        again, lines = file.read()
        if again:
            self._forget(name)
        if lines:
            with reading(file.path):
                take(lines, file)
        if again or lines:
            self.version += 1
        return file.offset - before >= STEP // 2 if lines else False

    def _forget(self, name: str) -> None:
        """Drop the rows of a table that was cut or replaced."""
        if name == WINDOWS:
            self.generation += 1
            self._dropped = 0
            self._sizes = Growing(np.int32)
            self._context, self._level, self._success = Growing(np.int32), Growing(np.int8), Growing(np.bool_)
            self._frontier = Growing(np.int8, int(self._config["n_contexts"]))
        elif name == EVENTS:
            self._events = _event_columns()
        elif name == EVALUATIONS:
            self._evaluated = []
        elif name == METRICS:
            self._steps = Growing(np.int64)
        else:
            self._seconds = Growing(np.float64)

    def _take_windows(self, lines: list[bytes], file: FollowedFile) -> None:
        contexts, levels = int(self._config["n_contexts"]), int(self._config["n_levels"])
        try:
            rows = json.loads(b"[" + b",".join(lines) + b"]")
            columns = [[value for row in rows for value in row[name]] for name in ("context", "level", "success")]
            arrays = [np.array(column) if column else np.zeros(0, np.int64) for column in columns]
            numbers, sizes = [row["window"] for row in rows], [len(row["context"]) for row in rows]
            same = all(len(row["level"]) == len(row["success"]) == size for row, size in zip(rows, sizes, strict=True))
            first = numbers[0] if not self._sizes.length else self.first
            expected = range(first + self._sizes.length, first + self._sizes.length + len(rows))
            fits = (
                all(array.dtype.kind in "iu" and array.ndim == 1 for array in arrays)
                and _within(arrays[0], contexts)
                and _within(arrays[1], levels)
                and _within(arrays[2], 2)
            )
            if not (fits and same and all(map(int.__eq__, numbers, expected))):
                raise ValueError
        except (ValueError, TypeError, KeyError, OverflowError):
            if len(lines) > 1:  # the rows before the wrong one are good
                half = len(lines) // 2
                self._take_windows(lines[:half], file)
                self._take_windows(lines[half:], file)
                return
            fault = self._fault(lines[0])
            file.refuse(lines[0], Refusal(f"{file.path} is damaged at row {file.rows + 1}: {fault}"))
        self.first = first
        for growing, array in zip((self._context, self._level, self._success), arrays, strict=True):
            growing.append(array)
        self._sizes.append(np.array(sizes))
        file.accept(lines)

    def _fault(self, line: bytes) -> str:
        """What is wrong with a row of windows.jsonl."""
        try:
            (row,) = parse_rows([line], WINDOWS)
            lengths = {len(row[name]) for name in ("context", "level", "success")}
        except (ValueError, TypeError) as error:
            return str(error)
        except KeyError as error:
            return f"there is no {error}"
        following = self.first + self._sizes.length
        if self._sizes.length and row.get("window") != following:
            return f"it is of window {row.get('window')}, and window {following} comes next"
        return "its lists differ in length" if len(lengths) > 1 else "a context, level or success is out of range"

    def _take_events(self, lines: list[bytes], file: FollowedFile) -> None:
        rows = parse_rows(lines, EVENTS)
        columns = {name: [row[name] for row in rows] for name in self._events}
        columns["kind"] = [KINDS.index(kind) for kind in columns["kind"]]
        for name in ("context", "from_level", "to_level"):
            most = int(self._config["n_contexts" if name == "context" else "n_levels"])
            if not _within(np.array(columns[name]), most):
                raise Refusal(f"{file.path} is damaged: {name} of an event is not in 0 to {most - 1}")
        for name, values in columns.items():
            self._events[name].append(np.array(values))
        file.accept(lines)

    def _take_evaluations(self, lines: list[bytes], file: FollowedFile) -> None:
        rows = parse_rows(lines, EVALUATIONS)
        for row in rows:
            names = list(self._evaluated[0]["groups"]) if self._evaluated else list(row["groups"])
            last = self._evaluated[-1]["window"] if self._evaluated else -1
            if list(row["groups"]) != names or not names or row["window"] <= last:
                raise Refusal(f"{file.path} is damaged: its evaluations are not of the same groups, or not in order")
            self._evaluated.append({name: row[name] for name in ("window", "success", "groups")})
        file.accept(lines)

    def _take_metrics(self, lines: list[bytes], file: FollowedFile) -> None:
        self._steps.append(np.array([row.get("environment_steps", 0) for row in parse_rows(lines, METRICS)], np.int64))
        file.accept(lines)

    def _take_timing(self, lines: list[bytes], file: FollowedFile) -> None:
        self._seconds.append(np.array([row["seconds"] for row in parse_rows(lines, TIMING)], np.float64))
        file.accept(lines)

    def _take_frontier(self) -> None:
        """The frontiers of the windows that were read; they are written before their window's row."""
        if not self._config.get("has_frontier"):
            return
        have, want, width = self._frontier.length, self._sizes.length, int(self._config["n_contexts"])
        if have >= want:
            return
        with opened(self.folder / FRONTIER) as file:
            data = read_span(file, (self._dropped + have) * width, (want - have) * width)
        rows = np.frombuffer(data[: len(data) // width * width], np.int8).reshape(-1, width)
        if not _within(rows, int(self._config["n_levels"])):
            raise Refusal(f"{self.folder / FRONTIER} is damaged: a level is not in its range")
        self._frontier.append(rows)
        self.version += len(rows) > 0
        if len(rows) < want - have:
            raise Refusal(
                f"{self.folder / FRONTIER} holds {have + len(rows)} windows, and {WINDOWS} {want}: it was cut or lost"
            )

    # -- what was read ---------------------------------------------------------------------------------------------

    @property
    def described(self) -> bool:
        """Whether its config was read."""
        return bool(self._config)

    @property
    def config(self) -> dict[str, Any]:
        """Its config.json."""
        return self._config

    @property
    def description(self) -> dict[str, Any]:
        """Its run.json, or the same of a log_dir."""
        return self._description

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        columns = [self._sizes, self._context, self._level, self._success, self._frontier, self._steps, self._seconds]
        return sum(column.nbytes for column in [*columns, *self._events.values()]) + 500 * len(self._evaluated)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """``[windows]``: seconds of each window; empty where not recorded."""
        return self._seconds.values[self._dropped :]

    def event_columns(self) -> dict[str, NDArray[Any]]:
        """The columns of events.jsonl, of the windows that were read; ``kind`` is an index into ``KINDS``."""
        last = self.first + self._windows()
        end = int(np.searchsorted(self._events["window"].values, last))
        return {name: column.values[:end] for name, column in self._events.items()}

    def _windows(self) -> int:
        """Windows with all their records."""
        return self._frontier.length if self._config.get("has_frontier") else self._sizes.length

    def record(self) -> RunRecord:
        """The run as reports see it; of the windows that are whole."""
        if self._record is not None and self._record[0] == self.version:
            return self._record[1]
        windows = self._windows()
        sizes = self._sizes.values[:windows]
        rollouts = int(sizes.sum())
        events = self.event_columns()
        begun = events["window"] >= self.first
        closed = [row for row in self._evaluated if row["window"] <= self.first + windows]
        names = list(closed[0]["groups"]) if closed else []
        record = assembled(
            self.folder,
            self.kind,
            self._description,
            int(self._config["n_contexts"]),
            windows,
            first=self.first,
            rollouts=Rollouts(
                np.repeat(np.arange(windows, dtype=np.int32), sizes),
                self._context.values[:rollouts],
                self._level.values[:rollouts],
                self._success.values[:rollouts],
            ),
            frontier=self._frontier.values if self._config["has_frontier"] else None,
            moves=Moves(
                (events["window"][begun] - self.first).astype(np.int32),
                events["context"][begun],
                events["kind"][begun],
                events["from_level"][begun],
            ),
            evaluated_at=np.array([row["window"] for row in closed], np.int64),
            held_out=np.array([row["success"] for row in closed], np.float64),
            held_out_groups={n: np.array([row["groups"][n] for row in closed], np.float64) for n in names},
            steps_at=self._steps.values[self._dropped : self._dropped + windows],
            seconds_at=np.cumsum(self._seconds.values)[self._dropped : self._dropped + windows],
        )
        self._record = self.version, record
        return record


def _event_columns() -> dict[str, Growing]:
    kinds = {"window": np.int64, "context": np.int32, "kind": np.int8, "from_level": np.int8, "to_level": np.int8}
    return {name: Growing(kind) for name, kind in kinds.items()} | {
        "success_average": Growing(np.float32),
        "evidence": Growing(np.float32),
    }


def _within(values: NDArray[Any], end: int) -> bool:
    return not values.size or bool(0 <= values.min() <= values.max() < end)
