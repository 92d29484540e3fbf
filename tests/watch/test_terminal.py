"""The page on a terminal, and the last words of the command."""

import io
import re

import numpy as np
from rich.console import Console

from scout_rl import rules
from scout_rl.watch.terminal import clock, draw, say_alerts, show
from scout_rl.watch.watcher import Watcher
from tests.watch.planted import GrowingRun, damaged


def shown(watcher, width=100):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw(watcher))
    return console.file.getvalue()


def test_runs_groups_worst_contexts_events_and_alerts(tmp_path):
    damaged(tmp_path / "old")
    run = GrowingRun(tmp_path / "new [bold]", rule=rules.Scout(n_min=5)).play(100, lambda cells, w: cells.context != 3)
    watcher = Watcher([tmp_path])
    watcher.look(spare=60.0)
    text = shown(watcher)
    assert "new [bold]" in text  # a name is text, not markup
    assert re.search(r"training +100/400 +2:30 +hard", text)
    assert "windows.jsonl is damaged at row 31" in " ".join(text.split())
    groups = watcher.rows[next(key for key in watcher.rows if "new" in watcher.rows[key].value["name"])].value["groups"]
    for name, success in groups.items():
        assert re.search(rf"{name} +━+.* {success:.2f}", text)
    assert "fails at the easiest" in text
    assert "alert: Context 3 is hopeless at the easiest level" in text
    assert f"seed {run.curriculum.seed}" in text
    assert shown(watcher, width=40)


def test_nothing_yet(tmp_path):
    watcher = Watcher([tmp_path])
    watcher.look()
    assert shown(watcher).split() == f"{tmp_path} holds no run yet no run yet".split()


def test_outside_a_terminal_it_is_drawn_once(tmp_path):
    GrowingRun(tmp_path / "run").play(3)
    console = Console(file=io.StringIO(), force_terminal=False, width=100)
    show(Watcher([tmp_path]), console)
    assert "3/400" in console.file.getvalue()


def test_the_last_words(tmp_path):
    GrowingRun(tmp_path / "bad", rule=rules.Scout(n_min=5)).play(120, lambda cells, w: np.zeros(16, bool))
    GrowingRun(tmp_path / "good").play(2)
    damaged(tmp_path / "damaged")
    watcher = Watcher([tmp_path])
    watcher.look(spare=0.0)
    console = Console(file=io.StringIO(), width=60)
    say_alerts(watcher, console)
    assert console.file.getvalue() == "no alerts\nnot read to the end yet, so without alerts: 3 of 3 runs\n"
    watcher.look(spare=60.0)
    console = Console(file=io.StringIO(), width=60)
    say_alerts(watcher, console)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("alert: bad: Every context is hopeless at the easiest level: no success in the last ")
    assert lines[1].startswith("trouble: ")


def test_clock():
    assert (clock(None), clock(59), clock(3600 * 2 + 62)) == ("–", "0:59", "2:01:02")
