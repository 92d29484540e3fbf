"""The one table for all runs: who is where, how well, and how long it will still take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from statistics import median

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scout_rl.bench.campaign.file import Run
from scout_rl.bench.campaign.state import Pace, State, Status, known_pace
from scout_rl.bench.run.store import Store

WIDE = 110
"""Columns from which everything about a run fits beside its name."""
STYLES = {"running": "cyan", "started": "cyan", "finished": "green", "failed": "bold red"}


class Board:
    """A live table on a terminal; elsewhere a line whenever a run ends. It reads the runs' own records."""

    def __init__(self, runs: Sequence[Run], todo: Sequence[Run], store: Store, slots: int, console: Console) -> None:
        self.runs, self.todo, self.store, self.slots, self.console = runs, todo, store, slots, console
        self.paces: dict[str, Pace] = {}
        self._before: dict[str, State] = {}
        self._first: dict[str, int] = {}
        self._looked = float("-inf")
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Board:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def look(self, standing: dict[str, Status], started: set[str]) -> None:
        """Take in where the runs stand; redraw where it is time."""
        ended = [run for run in self.runs if self._before.get(run.name, State.MISSING) != standing[run.name].state]
        if not self._before:  # what was so before this campaign began is no news
            ended = []
        self._before = {name: found.state for name, found in standing.items()}
        due = time.monotonic() - self._looked > (10 if self.store.slow else 1)
        if not (due or ended):
            return
        self._looked = time.monotonic()
        for run in self.runs:
            if run.name in started or (run in ended and standing[run.name].state is State.FINISHED):
                known = known_pace(run, self.store)
                if known is not None:
                    self.paces[run.name] = known
                    self._first.setdefault(run.name, known.windows)
        if self._live is not None:
            self._live.update(self.draw(standing, started), refresh=True)
            return
        for run in ended:
            found = standing[run.name]
            if found.state in (State.FINISHED, State.FAILED):
                said = found.note or _groups(self.paces.get(run.name))
                summary = summarise(standing, started, self.left(standing, started))
                self.console.print(
                    f"{found.state} {run.name}: {said}. {summary}", markup=False, highlight=False, soft_wrap=True
                )

    def draw(self, standing: dict[str, Status], started: set[str]) -> Group:
        """Running and failed runs first, then those that wait, as many as fit; finished ones are counted."""
        title = Text(summarise(standing, started, self.left(standing, started)), style="bold")
        rank = {"running": 0, "started": 0, "failed": 1, "unfinished": 2, "missing": 3, "finished": 4}
        rows = sorted(self.runs, key=lambda run: rank[self.word(run, standing, started)])
        lines = self.console.size.height - 6
        shown = rows[: max(5, lines if self.console.width >= WIDE else lines // 2)]
        table = status_table(self.console.width)
        for run in shown:
            word = self.word(run, standing, started)
            known = self.paces.get(run.name)
            left = self._seconds_left(run, known) if word == "running" else None
            add_row(table, run, word, standing[run.name], known, left)
        rest = len(rows) - len(shown)
        return Group(title, table, Text(f"… and {rest} more" if rest else "", style="dim"))

    def word(self, run: Run, standing: dict[str, Status], started: set[str]) -> str:
        """A run's state; one that was started is running as soon as its records grow."""
        if run.name not in started:
            return str(standing[run.name].state)
        known = self.paces.get(run.name)
        return "running" if known and known.windows > self._first[run.name] else "started"

    def left(self, standing: dict[str, Status], started: set[str]) -> float | None:
        """Seconds until all is done: windows left x seconds a window (of the setting, as measured) / slots."""
        todo = [run for run in self.todo if standing[run.name].state in (State.MISSING, State.UNFINISHED)]
        speeds: dict[str, list[float]] = {}
        for run in self.runs:
            known = self.paces.get(run.name)
            if known is not None and known.seconds is not None:
                speeds.setdefault(run.config.setting, []).append(known.seconds)
        if not speeds:
            return None if todo else 0.0
        usual = median(value for values in speeds.values() for value in values)
        work = []
        for run in todo:
            done = self.paces[run.name].windows if run.name in self.paces else standing[run.name].windows
            work.append((run.config.windows - done) * median(speeds.get(run.config.setting, [usual])))
        return max(sum(work) / self.slots, max(work, default=0.0))

    def _seconds_left(self, run: Run, known: Pace | None) -> float | None:
        if known is None or known.seconds is None:
            return None
        return (run.config.windows - known.windows) * known.seconds


def status_table(width: int) -> Table:
    """The empty table; in a narrow terminal a run has two lines and no bar, so that its counts stay whole."""
    if width < WIDE:
        table = Table("run", "state", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.columns[0].overflow = "fold"
        table.columns[1].no_wrap = True
        table.add_column("windows", justify="right", no_wrap=True)
        return table
    table = Table(expand=False)
    table.add_column("run", overflow="fold")
    for name in ("state", "windows", "", "held-out", "left"):
        table.add_column(name, justify="right" if name in ("windows", "left") else "left", no_wrap=name != "held-out")
    return table


def add_row(table: Table, run: Run, word: str, found: Status, known: Pace | None, left: float | None) -> None:
    """One run."""
    total = run.config.windows
    done = total if word == "finished" else max(found.windows, known.windows if known else 0)
    said = found.note or _groups(known)
    time_left = "" if left is None else duration(left)
    state, counted = Text(word, style=STYLES.get(word, "")), f"{done}/{total}"
    if len(table.columns) == 3:
        name = Text.assemble(run.name, (f"\n  {said}" if said else "", "dim"))
        table.add_row(name, state, f"{counted}\n{time_left}" if time_left else counted)
        return
    table.add_row(run.name, state, counted, ProgressBar(total=total, completed=done, width=8), Text(said), time_left)


def summarise(standing: dict[str, Status], started: set[str], left: float | None) -> str:
    """One line: how many are where, and the time left."""
    counts = Counter(str(found.state) for name, found in standing.items() if name not in started)
    words = [f"{counts[word]} {word}" for word in ("finished", "failed", "unfinished", "missing") if counts[word]]
    if started:
        words.insert(0, f"{len(started)} started")
        words.append("time left not known yet" if left is None else f"about {duration(left)} left")
    return f"{len(standing)} runs: {', '.join(words)}"


def duration(seconds: float) -> str:
    """In the two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((i for i, (n, _) in enumerate(units) if n), 3)
    return " ".join(f"{n} {unit}" for n, unit in units[first : first + 2] if n) or "0 s"


def _groups(known: Pace | None) -> str:
    return "" if known is None else "  ".join(f"{name} {value:.2f}" for name, value in known.held_out.items())
