"""The table of a campaign's runs: their state, success and remaining time."""

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

from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.campaign.state import Pace, Phase, RunState, known_pace
from scout_rl.bench.run.store import Store

WIDE = 110
"""Width from which a run fits on one line."""
STYLES = {"running": "cyan", "started": "cyan", "finished": "green", "failed": "bold red"}


class Board:
    """A table on a terminal, shown while ``live`` is entered; elsewhere a line whenever a run ends.

    It reads the runs' records.
    """

    def __init__(
        self, runs: Sequence[PlannedRun], todo: Sequence[PlannedRun], store: Store, slots: int, console: Console
    ) -> None:
        self.runs, self.todo, self.store, self.slots, self.console = runs, todo, store, slots, console
        self.paces: dict[str, Pace] = {}
        self._before: dict[str, Phase] = {}
        self._first: dict[str, int] = {}
        self._updated = float("-inf")
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def update(self, states: dict[str, RunState], started: set[str]) -> None:
        """Take the new states; redraw if a run ended or the last drawing is old."""
        ended = [run for run in self.runs if self._before.get(run.name, Phase.MISSING) != states[run.name].phase]
        if not self._before:  # the first states are no news
            ended = []
        self._before = {name: state.phase for name, state in states.items()}
        due = time.monotonic() - self._updated > (10 if self.store.slow else 1)
        if not (due or ended):
            return
        self._updated = time.monotonic()
        for run in self.runs:
            if run.name in started or (run in ended and states[run.name].phase is Phase.FINISHED):
                pace = known_pace(run, self.store)
                if pace is not None:
                    self.paces[run.name] = pace
                    self._first.setdefault(run.name, pace.windows)
        if self.live is not None:
            self.live.update(self.draw(states, started), refresh=True)
            return
        for run in ended:
            state = states[run.name]
            if state.phase in (Phase.FINISHED, Phase.FAILED):
                remark = state.note or _groups(self.paces.get(run.name))
                summary = summarise(states, started, self.left(states, started))
                self.console.print(
                    f"{state.phase} {run.name}: {remark}. {summary}", markup=False, highlight=False, soft_wrap=True
                )

    def draw(self, states: dict[str, RunState], started: set[str]) -> Group:
        """Running and failed runs first, then waiting and finished ones, as many as fit."""
        title = Text(summarise(states, started, self.left(states, started)), style="bold")
        rank = {"running": 0, "started": 0, "failed": 1, "elsewhere": 2, "unfinished": 3, "missing": 4, "finished": 5}
        rows = sorted(self.runs, key=lambda run: rank[self.word(run, states, started)])
        lines = self.console.size.height - 6
        shown = rows[: max(5, lines if self.console.width >= WIDE else lines // 2)]
        table = status_table(self.console.width)
        for run in shown:
            word = self.word(run, states, started)
            pace = self.paces.get(run.name)
            left = self._seconds_left(run, pace) if word == "running" else None
            add_row(table, run, word, states[run.name], pace, left)
        rest = len(rows) - len(shown)
        return Group(title, table, Text(f"… and {rest} more" if rest else "", style="dim"))

    def word(self, run: PlannedRun, states: dict[str, RunState], started: set[str]) -> str:
        """A run's state in a word; a started run is running as soon as its records grow."""
        if run.name not in started:
            return str(states[run.name].phase)
        pace = self.paces.get(run.name)
        return "running" if pace and pace.windows > self._first[run.name] else "started"

    def left(self, states: dict[str, RunState], started: set[str]) -> float | None:
        """Seconds until all is done: windows left x measured seconds per window of the setting / slots."""
        todo = [run for run in self.todo if states[run.name].phase in (Phase.MISSING, Phase.UNFINISHED)]
        speeds: dict[str, list[float]] = {}
        for run in self.runs:
            pace = self.paces.get(run.name)
            if pace is not None and pace.seconds is not None:
                speeds.setdefault(run.config.setting, []).append(pace.seconds)
        if not speeds:
            return None if todo else 0.0
        usual = median(value for values in speeds.values() for value in values)
        work = []
        for run in todo:
            done = self.paces[run.name].windows if run.name in self.paces else states[run.name].windows
            work.append((run.config.windows - done) * median(speeds.get(run.config.setting, [usual])))
        return max(sum(work) / self.slots, max(work, default=0.0))

    def _seconds_left(self, run: PlannedRun, pace: Pace | None) -> float | None:
        if pace is None or pace.seconds is None:
            return None
        return (run.config.windows - pace.windows) * pace.seconds


def status_table(width: int) -> Table:
    """The empty table; in a narrow terminal a run has two lines and no bar, so that its counts fit."""
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


def add_row(table: Table, run: PlannedRun, word: str, state: RunState, pace: Pace | None, left: float | None) -> None:
    """Add the row of one run."""
    total = run.config.windows
    done = total if word == "finished" else max(state.windows, pace.windows if pace else 0)
    remark = state.note or _groups(pace)
    time_left = "" if left is None else duration(left)
    styled_word, counted = Text(word, style=STYLES.get(word, "")), f"{done}/{total}"
    if len(table.columns) == 3:
        name = Text.assemble(run.name, (f"\n  {remark}" if remark else "", "dim"))
        table.add_row(name, styled_word, f"{counted}\n{time_left}" if time_left else counted)
        return
    table.add_row(
        run.name, styled_word, counted, ProgressBar(total=total, completed=done, width=8), Text(remark), time_left
    )


def summarise(states: dict[str, RunState], started: set[str], left: float | None) -> str:
    """One line: how many runs are in each state, and the time left."""
    counts = Counter(str(state.phase) for name, state in states.items() if name not in started)
    words = [
        f"{counts[word]} {word}"
        for word in ("finished", "failed", "elsewhere", "unfinished", "missing")
        if counts[word]
    ]
    if started:
        words.insert(0, f"{len(started)} started")
        words.append("time left not known yet" if left is None else f"about {duration(left)} left")
    return f"{len(states)} runs: {', '.join(words)}"


def duration(seconds: float) -> str:
    """Seconds as text, in the two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((i for i, (n, _) in enumerate(units) if n), 3)
    return " ".join(f"{n} {unit}" for n, unit in units[first : first + 2] if n) or "0 s"


def _groups(pace: Pace | None) -> str:
    return "" if pace is None else "  ".join(f"{name} {value:.2f}" for name, value in pace.held_out.items())
