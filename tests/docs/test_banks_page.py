"""The page "Our banks in your training": its blocks run, its runs are compared, its table is that of the settings."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from scout_rl.bench import env_id
from scout_rl.bench.families import family
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "banks.md"
ACTIONS = {"minigrid": "7 moves", "fetch": "4 in [-1, 1]", "pointmaze": "2 in [-1, 1]", "metaworld": "4 in [-1, 1]"}
"""Those of the stock spaces: `test_environments.py` checks that the ids have them."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="needs the extra sb3")
@pytest.mark.slow
def test_the_blocks_run_and_two_rules_are_compared(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(blocks("python")))
    run = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second, *evaluations = run.stdout.splitlines()
    assert [first, second] == re.findall(r"print\(.*\)  # (.*)", "\n".join(blocks("python")))
    assert len(evaluations) == 4
    for rule in ("ability", "random"):
        rows = [json.loads(line) for line in (tmp_path / f"runs/{rule}/evaluations.jsonl").read_text().splitlines()]
        assert [len(row["outcomes"]) for row in rows] == [40, 40]
        assert rows[0]["window"] == 0 < rows[1]["window"]
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out/tables/runs-success.csv").open(newline="", encoding="utf-8") as file:
        assert [row["rule"] for row in csv.DictReader(file)] == ["ability", "random"]


def row(key: str) -> str:
    """The line of the table for a setting and its small variant."""
    setting, small = SETTINGS[key], SETTINGS[f"{key}-small"]
    limit = family(setting.family).batch_simulator(setting).max_steps
    assert (setting.n_levels, setting.groups) == (small.n_levels, small.groups)
    groups = ", ".join(f"`{group.name}`" for group in setting.groups)
    contexts = f"{setting.n_train} ({small.n_train}) | {setting.n_held_out} ({small.n_held_out})"
    return f"| `{env_id(key)}` | {contexts} | {setting.n_levels} | {groups} | {limit:,} | {ACTIONS[setting.family]} |"


def test_the_table_is_that_of_the_settings():
    expected = [row(key) for key in SETTINGS if not key.endswith("-small")]
    assert [line for line in PAGE.read_text().splitlines() if line.startswith("| `scout/")] == expected
