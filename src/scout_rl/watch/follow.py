"""Follow the append-only records of one run by byte offset: what was read is not read again.

A table that was cut (a resumed run goes back to its checkpoint) or replaced is read from its beginning. A damaged row
stops its table there: the rows before it stay, and ``trouble`` names it in a sentence. Reading is done in steps, so
that a caller can stop after some milliseconds and go on later.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.damage import DAMAGE, error_text
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import read_run
from scout_rl.records.tables import CONFIG, EVALUATIONS, EVENTS, FRONTIER, KINDS, WINDOWS, parse_config, parse_rows
from scout_rl.report.read.run import Moves, Rollouts, RunRecord
from scout_rl.report.read.runs import assembled, described, load
from scout_rl.rules.rule import check_shape
from scout_rl.watch.disk import MOST, Signature, lines_of, opened, read_small, read_span, reading_foreign, signature

STEP = 2 << 20
"""Bytes that one step reads of a table."""
GUARD = 4096
"""Bytes before the offset, and at least the whole last row, that must still be there: else the file was cut, and has
grown again."""
MEMORY = 256 << 20
"""Bytes of one run in memory. A longer run loses its oldest windows here, as if its records began later."""
MOST_CELLS = 10_000_000
"""Contexts x levels of a run. More would not fit the memory."""
MOST_WINDOWS = 2**31 - 1
"""Window numbers have 32 bits."""
LONGEST = 1e9
"""Seconds of a window: thirty years."""
NEEDED = {"rule", "n_contexts", "n_levels", "seed", "window", "has_frontier"}
EVALUATED = ("window", "success", "groups")
Take = Callable[[list[bytes]], None]
METRICS, TIMING, RUN = "metrics.jsonl", "timing.jsonl", "run.json"


class TooLarge(Refusal):
    """Nothing is wrong with the run's files, but it has more cells than the page shows."""


class Growing:
    """An array that grows at its end; ``values`` is the part in use."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._array: NDArray[Any] = np.zeros((1024,) if width is None else (1, width), dtype)
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
            self._guard = (self._guard + b"".join(lines))[-max(GUARD, len(lines[-1])) :]

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
                return lines_of(data[:end])
            if len(data) < step:
                return []  # the writer is in the middle of its row
            if step >= MOST:
                raise Refusal(f"{self.path} is damaged: row {self.rows + 1} has more than {MOST:,} bytes")
            step *= 4


class Windows:
    """The rows of windows.jsonl and frontier.int8 as arrays."""

    def __init__(self, n_contexts: int) -> None:
        self.first, self.dropped = 0, 0
        """Number of the first window in memory, and how many of the file's windows were dropped before it."""
        self.sizes = Growing(np.int32)
        """``[windows]``: rollouts of each."""
        self.context, self.level, self.success = Growing(np.int32), Growing(np.int8), Growing(np.bool_)
        self.frontier = Growing(np.int8, n_contexts)

    @property
    def columns(self) -> list[Growing]:
        """All of them."""
        return [self.sizes, self.context, self.level, self.success, self.frontier]

    def drop(self, windows: int) -> None:
        """Forget the oldest windows."""
        rollouts = int(self.sizes.values[:windows].sum())
        for column in (self.context, self.level, self.success):
            column.drop(rollouts)
        self.sizes.drop(windows)
        self.frontier.drop(min(windows, self.frontier.length))
        self.first, self.dropped = self.first + windows, self.dropped + windows


class FollowedRun:
    """The records of a run folder or a ``log_dir``, as far as they were read."""

    def __init__(self, folder: Path, memory: int = MEMORY) -> None:
        self.folder, self._memory = folder, memory
        self.trouble = ""
        """What is wrong with the folder, in a sentence."""
        self.version = 0
        """Grows whenever rows were added or cut."""
        self.generation = secrets.randbits(48)
        """Grows when windows were cut: what was computed from them is void. It begins at random: no two readings of a
        folder share one."""
        self.complete = False
        """Whether everything that was on the disk at the last `advance` is read."""
        self._files = {name: FollowedFile(folder / name) for name in (WINDOWS, EVENTS, EVALUATIONS, METRICS, TIMING)}
        self._signature: tuple[Signature | None, Signature | None] = None, None
        self._config: dict[str, Any] = {}
        self._description: dict[str, Any] = {}
        self._record: tuple[int, RunRecord] | None = None
        self.kind = "log_dir"
        self._clear()

    # -- reading ---------------------------------------------------------------------------------------------------

    def advance(self, seconds: float = float("inf")) -> None:
        """Read what is new, for about this long; at least one step. A run that is `TooLarge` is refused."""
        deadline = time.perf_counter() + seconds
        troubles = []
        try:
            self._describe()
        except FileNotFoundError:
            self.complete = True
            what = f"lost its {CONFIG}" if self.folder.is_dir() else "was deleted"
            self.trouble = f"{self.folder} {what}: what was read before is shown" if self._config else ""
            return
        except TooLarge:
            raise
        except Refusal as refusal:
            self.complete, self.trouble = True, str(refusal)
            return
        self.complete = True
        tables: tuple[tuple[str, Take], ...] = (
            (WINDOWS, self._take_windows),
            (EVENTS, self._take_events),
            (EVALUATIONS, self._take_evaluations),
            (METRICS, self._take_metrics),
            (TIMING, self._take_timing),
        )
        for name, take in tables:
            try:
                while self._advance_file(name, take):
                    if time.perf_counter() > deadline:
                        self.complete = False
                        break
            except Refusal as refusal:
                troubles.append(str(refusal))
            if not self.complete:
                break
        self.trouble = "; ".join(troubles)

    def _drop(self, windows: int) -> None:
        """Forget the oldest windows, to stay within the memory."""
        self._rows.drop(windows)
        early = int(np.searchsorted(self._events["window"].values, self._rows.first))
        for column in self._events.values():
            column.drop(early)
        self.generation += 1
        self.version += 1

    def _describe(self) -> None:
        """Read config.json (and run.json) once, and again when another run stands in the folder."""
        now = signature(self.folder / CONFIG), signature(self.folder / RUN)
        if now[0] is not None and now == self._signature:
            return
        config = config_of(self.folder)
        description = description_of(self.folder, config, now[1] is not None)
        n_contexts, n_levels = config["n_contexts"], description["config"]["levels"]
        if n_contexts * n_levels > MOST_CELLS:
            raise TooLarge(
                f"{self.folder} has {n_contexts:,} contexts x {n_levels} levels; "
                f"the page shows at most {MOST_CELLS:,} cells (scout report shows any)"
            )
        self._signature, self._description, same = now, description, config == self._config
        if same:
            self.version += 1
            return
        if self._config:
            for name in self._files:
                self._files[name] = FollowedFile(self.folder / name)
            self.generation += 1
        self._config, self.kind = config, "folder" if now[1] is not None else "log_dir"
        self._clear()

    def _clear(self) -> None:
        for name in self._files:
            self._forget(name)
        self.version += 1

    def _advance_file(self, name: str, take: Take) -> bool:
        """One step of one table; whether there may be more."""
        file = self._files[name]
        before = file.offset
        again, lines = file.read()
        if again:
            self._forget(name)
            self.generation += name == WINDOWS
            self.version += 1
        try:
            if lines:
                self.version += 1
                self._feed(file, take, lines)
        finally:
            if name == WINDOWS:
                self._take_frontier()
                if self.nbytes > self._memory:
                    self._drop(self._windows() // 2)
        return file.offset - before >= STEP // 2

    def _feed(self, file: FollowedFile, take: Take, lines: list[bytes]) -> None:
        """Take all lines; where one is wrong, those before it, and stop there."""
        try:
            take(lines)
        except (*DAMAGE, TypeError, RecursionError) as error:
            if len(lines) > 1:
                half = len(lines) // 2
                self._feed(file, take, lines[:half])
                self._feed(file, take, lines[half:])
                return
            sentence = f"{file.path} is damaged at row {file.rows + 1}: {error_text(error)}"
            file.refuse(lines[0], Refusal(sentence))
        file.accept(lines)

    def _forget(self, name: str) -> None:
        """Drop the rows of a table."""
        if name == WINDOWS:
            self._rows = Windows(int(self._config.get("n_contexts", 1)))
        elif name == EVENTS:
            self._events = _event_columns()
        elif name == EVALUATIONS:
            self._evaluated: list[dict[str, Any]] = []
        elif name == METRICS:
            self._steps = Growing(np.int64)
        else:
            self._seconds = Growing(np.float64)

    # Each of these takes all rows or, where one is wrong, none.

    def _take_windows(self, lines: list[bytes]) -> None:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        if len(rows) != len(lines):
            raise Refusal("it is not one JSON object")
        known, sizes = self._rows, [len(row["context"]) for row in rows]
        first = rows[0]["window"] if not known.sizes.length else known.first
        following = first + known.sizes.length
        if [row["window"] for row in rows] != list(range(following, following + len(rows))):
            raise Refusal(f"it is of window {rows[0]['window']}, and window {following} comes next")
        _require_windows([rows[0], rows[-1]])
        arrays = []
        for name, end in (("context", "n_contexts"), ("level", "n_levels"), ("success", "")):
            if [len(row[name]) for row in rows] != sizes:
                raise Refusal("its lists differ in length")
            values = np.array([value for row in rows for value in row[name]] or np.zeros(0, np.int64))
            most = int(self._config[end]) if end else 2
            if values.dtype.kind not in "iu" or not _within(values, most):
                raise Refusal(f"its {name} is not a list of whole numbers from 0 to {most - 1}")
            arrays.append(values)
        known.first = first
        for column, values in zip((known.context, known.level, known.success), arrays, strict=True):
            column.append(values)
        known.sizes.append(np.array(sizes))

    def _take_events(self, lines: list[bytes]) -> None:
        rows = rows_of(lines, EVENTS)
        columns = {
            name: np.array([row[name] for row in rows], np.float64 if column.values.dtype.kind == "f" else np.int64)
            for name, column in self._events.items()
            if name != "kind"
        }
        columns["kind"] = np.array([KINDS.index(row["kind"]) for row in rows])
        for name, end in (("context", "n_contexts"), ("from_level", "n_levels"), ("to_level", "n_levels")):
            if not _within(columns[name], int(self._config[end])):
                raise Refusal(f"its {name} is not in 0 to {int(self._config[end]) - 1}")
        for name, column in self._events.items():
            column.append(columns[name])

    def _take_evaluations(self, lines: list[bytes]) -> None:
        rows = [{name: row[name] for name in EVALUATED} for row in evaluations_of(lines)]
        last = self._evaluated[-1] if self._evaluated else {"window": -1, "groups": rows[0]["groups"]}
        for row in rows:
            if list(row["groups"]) != list(last["groups"]) or not row["groups"] or row["window"] <= last["window"]:
                raise Refusal("it is not of the groups of the evaluation before it, or not later")
            last = row
        self._evaluated += rows

    def _take_metrics(self, lines: list[bytes]) -> None:
        self._steps.append(np.array([row.get("environment_steps", 0) for row in parse_rows(lines, METRICS)], np.int64))

    def _take_timing(self, lines: list[bytes]) -> None:
        self._seconds.append(seconds_of(lines))

    def _take_frontier(self) -> None:
        """The frontiers of the windows that were read; they are written before their window's row."""
        if not self._config.get("has_frontier"):
            return
        have, want, width = self._rows.frontier.length, self._rows.sizes.length, int(self._config["n_contexts"])
        if have >= want:
            return
        try:
            with opened(self.folder / FRONTIER) as file:
                data = read_span(file, (self._rows.dropped + have) * width, (want - have) * width)
        except FileNotFoundError:
            data = b""
        rows = np.frombuffer(data[: len(data) // width * width], np.int8).reshape(-1, width)
        if not _within(rows, int(self._config["n_levels"])):
            raise Refusal(f"{self.folder / FRONTIER} is damaged: a level is not in its range")
        self._rows.frontier.append(rows)
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
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        columns = [*self._rows.columns, *self._events.values(), self._steps, self._seconds]
        return sum(column.nbytes for column in columns) + 500 * len(self._evaluated)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """``[windows]``: seconds of each window; empty where not recorded."""
        return self._seconds.values[self._rows.dropped :]

    def event_columns(self) -> dict[str, NDArray[Any]]:
        """The columns of events.jsonl, of the windows that were read; ``kind`` is an index into ``KINDS``."""
        last = self._rows.first + self._windows()
        end = int(np.searchsorted(self._events["window"].values, last))
        return {name: column.values[:end] for name, column in self._events.items()}

    def _windows(self) -> int:
        """Windows with all their records."""
        return self._rows.frontier.length if self._config.get("has_frontier") else self._rows.sizes.length

    def record(self) -> RunRecord:
        """The run as reports see it, of the windows that are whole; refuse a folder without records."""
        if not self._config:
            raise Refusal(self.trouble or f"{self.folder} holds no records yet")
        if self._record is not None and self._record[0] == self.version:
            return self._record[1]
        windows = self._windows()
        sizes = self._rows.sizes.values[:windows]
        rollouts = int(sizes.sum())
        events = self.event_columns()
        begun = events["window"] >= self._rows.first
        closed = [row for row in self._evaluated if row["window"] <= self._rows.first + windows]
        names = list(closed[0]["groups"]) if closed else []
        record = assembled(
            self.folder,
            self.kind,
            self._description,
            int(self._config["n_contexts"]),
            windows,
            first=self._rows.first,
            rollouts=Rollouts(
                np.repeat(np.arange(windows, dtype=np.int32), sizes),
                self._rows.context.values[:rollouts],
                self._rows.level.values[:rollouts],
                self._rows.success.values[:rollouts],
            ),
            frontier=self._rows.frontier.values if self._config["has_frontier"] else None,
            moves=Moves(
                (events["window"][begun] - self._rows.first).astype(np.int32),
                events["context"][begun],
                events["kind"][begun],
                events["from_level"][begun],
            ),
            evaluated_at=np.array([row["window"] for row in closed], np.int64),
            held_out=np.array([row["success"] for row in closed], np.float64),
            held_out_groups={n: np.array([row["groups"][n] for row in closed], np.float64) for n in names},
            steps_at=self._steps.values[self._rows.dropped : self._rows.dropped + windows],
            seconds_at=np.cumsum(self._seconds.values)[self._rows.dropped : self._rows.dropped + windows],
        )
        self._record = self.version, record
        return record


class PackedRun:
    """A compact record: read at once, and never changed."""

    complete, trouble, version, generation = True, "", 1, 0

    def __init__(self, path: Path) -> None:
        with opened(path):  # refuses links
            self._record = load(path)
        self.nbytes = sum(array.nbytes for array in _arrays(self._record))

    def advance(self, seconds: float = 0.0) -> None:
        """Nothing is new."""

    def record(self) -> RunRecord:
        """The run."""
        return self._record

    @property
    def seconds(self) -> NDArray[np.float64]:
        """A compact record holds the sum alone."""
        return np.zeros(0)

    def event_columns(self) -> dict[str, NDArray[Any]]:
        """Its moves, without the numbers behind them."""
        run, moves = self._record, self._record.moves
        unknown = np.full(len(moves.window), np.nan)
        to = moves.from_level if run.frontier is None else run.frontier[moves.window, moves.context]
        return {
            **{"window": moves.window.astype(np.int64), "context": moves.context, "kind": moves.kind},
            **{"from_level": moves.from_level, "to_level": to, "success_average": unknown, "evidence": unknown},
        }


def _arrays(run: RunRecord) -> list[NDArray[Any]]:
    """All arrays of a run."""
    optional = [array for array in (run.frontier, run.context_group, run.oracle_group) if array is not None]
    evaluations = [run.evaluated_at, run.held_out, *run.held_out_groups.values()]
    return [*run.rollouts, *run.moves, *evaluations, run.steps_at, run.seconds_at, *optional]


Opened = FollowedRun | PackedRun
"""A run whose records are in memory."""


def config_of(folder: Path) -> dict[str, Any]:
    """The folder's config.json, checked."""
    path = folder / CONFIG
    content = read_small(path)
    with reading_foreign(path):
        config = parse_config(content, path)
        if missing := sorted(NEEDED - config.keys()):
            raise Refusal(f"there is no {missing[0]!r}")
        check_shape(config["n_contexts"], config["n_levels"])
    return config


def description_of(folder: Path, config: dict[str, Any], ours: bool) -> dict[str, Any]:
    """The folder's run.json (``ours``), or what one would say of its ``config``; checked."""
    path = folder / (RUN if ours else CONFIG)
    read_small(path)  # refuses links and giants
    with reading_foreign(path):
        description = read_run(folder) if ours else described(config)
        about = description["config"]
        check_shape(config.get("n_contexts", 1), about["levels"])
        oracle = description.get("groups", {}).get("oracle", [])
        numbers = *about.items(), *about.get("constants", {}).items(), *(("oracle", number) for number in oracle)
        for name, number in numbers:
            if name != "seed" and isinstance(number, int) and not -(2**63) <= number < 2**63:
                raise Refusal(f"its {name!r} has more than 64 bits")
    return description


def rows_of(lines: list[bytes], table: str) -> list[dict[str, Any]]:
    """The rows of a table's lines, with their windows checked."""
    rows = parse_rows(lines, table)
    _require_windows(rows)
    return rows


def _require_windows(rows: list[dict[str, Any]]) -> None:
    if not all(0 <= row["window"] < MOST_WINDOWS for row in rows):
        raise Refusal(f"its window is not in 0 to {MOST_WINDOWS - 1:,}")


def evaluations_of(lines: list[bytes]) -> list[dict[str, Any]]:
    """The rows of lines of evaluations.jsonl, checked."""
    rows = rows_of(lines, EVALUATIONS)
    if not all(0 <= value <= 1 for row in rows for value in (row["success"], *row["groups"].values())):
        raise Refusal("a success is not between 0 and 1")
    return rows


def seconds_of(lines: list[bytes]) -> NDArray[np.float64]:
    """The seconds in lines of timing.jsonl, checked."""
    seconds = np.array([row["seconds"] for row in parse_rows(lines, TIMING)], np.float64)
    if not ((seconds >= 0) & (seconds < LONGEST)).all():
        raise Refusal("its seconds are no time")
    return seconds


def _event_columns() -> dict[str, Growing]:
    kinds = {"window": np.int64, "context": np.int32, "kind": np.int8, "from_level": np.int8, "to_level": np.int8}
    return {name: Growing(kind) for name, kind in kinds.items()} | {
        "success_average": Growing(np.float32),
        "evidence": Growing(np.float32),
    }


def _within(values: NDArray[Any], end: int) -> bool:
    return not values.size or bool(0 <= values.min() <= values.max() < end)
