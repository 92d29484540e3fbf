"""The demo: three runs of a campaign, and the report's own numbers about them."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from scout_rl.commands.demo import RULES, demo, success_table
from tests.report.planted import config, write_compact


def test_the_worst_groups_area_is_the_reports(tmp_path):
    """The smaller of two areas, not the area under the lower curve: these two cross, and both areas are a half."""
    saw = np.array([0, 1, 0, 1, 0])
    records = [
        write_compact(tmp_path / f"{rule}.npz", config(rule=rule, windows=80), {"easy": saw, "hard": 1 - saw})
        for rule in ("scout", "target")
    ]
    console = Console(file=io.StringIO(), width=120)
    console.print(success_table(records))
    header, *rows = [
        line.split("│") for line in console.file.getvalue().replace("┃", "│").splitlines() if "│" in line or "┃" in line
    ]
    names = [cell.strip() for cell in header]
    assert [row[names.index("rule")].strip() for row in rows] == ["scout", "target"]
    assert [row[names.index("worst-group AUC")].strip() for row in rows] == ["0.500", "0.500"]
    assert [row[names.index("windows to solve")].strip() for row in rows] == ["never", "never"]


def test_the_window_of_the_solution_without_a_count_of_seeds(tmp_path):
    curves = {"ability": [0, 0.5, 0.9, 0.8, 1], "target": [0, 0, 0, 0, 0.1]}
    records = [
        write_compact(tmp_path / f"{rule}.npz", config(rule=rule, windows=80), {"all": np.array(curve)})
        for rule, curve in curves.items()
    ]
    table = success_table(records)
    assert [str(column.header) for column in table.columns] == ["rule", "final", "AUC", "windows to solve"]
    assert list(table.columns[-1].cells) == ["40", "never"]


@pytest.mark.slow
def test_the_demo_trains_three_rules_and_goes_on_where_it_was(tmp_path, capsys):
    pytest.importorskip("minigrid")
    assert demo(windows=2, out=tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "3 runs: 3 finished" in said
    assert "held-out success from the target start" in said
    assert "plain training: every rollout begins at the real start." in said
    page = (tmp_path / "index.html").read_text()
    assert f"curves and tables: {tmp_path / 'index.html'}" in said
    runs = sorted(tmp_path.glob("runs/*/*/*/run.json"))
    assert [json.loads(path.read_text())["config"]["rule"] for path in runs] == ["ability", "anneal", "target"]
    assert all(rule in page for rule in RULES)
    assert list(tmp_path.glob("figures/*/curves.png"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/*/*.jsonl")}
    assert demo(windows=2, out=tmp_path) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
