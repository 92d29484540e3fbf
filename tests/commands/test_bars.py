"""Progress in terminals of any width: counts, times and names are whole, and the news are all there."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from scout_rl.bench.campaign.file import load
from scout_rl.bench.campaign.state import Pace, Phase, RunState
from scout_rl.bench.campaign.table import Board
from scout_rl.bench.run.store import open_store
from scout_rl.commands.bars import progress_bar

NEWS = "held-out short 0.95 long 0.80  frontier short 1.20 long 2.30"
WIDTHS = [56, 60, 80, 100, 119, 120, 200]
ROOT = Path(__file__).parents[2]


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40, color_system=None)


def lines(console):
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_bars_of_runs(width):
    console = terminal(width)
    bar = progress_bar(console, "{task.description:>8}")
    bar.get_time = lambda: 0.0  # no second passes while this test waits for a core
    for name, done in (("scout", 1200), ("anneal", 141)):
        bar.update(bar.add_task(name, total=1200, news=NEWS), completed=done)
    console.print(bar.get_renderable())
    shown = lines(console)
    assert max(len(line.rstrip()) for line in shown) <= width
    (scout,) = [line for line in shown if "scout" in line]
    (anneal,) = [line for line in shown if "anneal" in line]
    assert "1200/1200 0:00:00 0:00:00" in scout
    assert "━ " in scout  # a bar, however short
    assert " 141/1200 0:00:00 -:--:--" in anneal
    for piece in NEWS.split("  "):
        assert sum(piece in line for line in shown) == 2  # unbroken, once a run


@pytest.mark.parametrize("width", WIDTHS)
def test_the_table_of_a_campaign(width):
    console = terminal(width)
    runs = load(ROOT / "campaigns/evidence.toml", "runs").runs[:4]
    total = runs[0].config.windows
    board = Board(runs, runs, open_store("nowhere"), 2, console)
    board.paces = {runs[0].name: Pace(340, 8.65, {"on-table": 1.0, "in-air": 0.08})}
    board._first = {runs[0].name: 0}
    states = {run.name: RunState(Phase.MISSING) for run in runs}
    states[runs[1].name] = RunState(Phase.FINISHED, total)
    states[runs[2].name] = RunState(Phase.FAILED, 12, "the worker was ended by SIGKILL")
    console.print(board.draw(states, {runs[0].name}))
    shown = lines(console)
    assert max(len(line.rstrip()) for line in shown) <= width
    for run, state, count in zip(runs, ("running", "finished", "failed", "missing"), (340, total, 12, 0), strict=True):
        (line,) = [line for line in shown if run.name in line]
        assert state in line
        assert f"{count}/{total}" in line
    text = " ".join(" ".join(shown).replace("│", " ").split())
    assert "on-table 1.00 in-air 0.08" in text
    assert "2 h 3 min" in text


def test_a_transient_bar_is_not_in_a_file():
    console = Console(file=io.StringIO(), width=80)
    with progress_bar(console, transient=True) as bar:
        bar.update(bar.add_task("x", total=2, news=""), completed=1)
    assert console.file.getvalue() == ""
