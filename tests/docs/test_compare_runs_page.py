"""The page "Compare your own runs": its blocks run in an empty folder, and the report shows what the page says."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from scout_rl.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "compare-runs.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def shell(number: int) -> list[list[str]]:
    return [line.split() for line in blocks("sh")[number].splitlines()]


def test_from_training_to_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    folders = {path.parent.relative_to(tmp_path / "runs").as_posix() for path in tmp_path.rglob("windows.jsonl")}
    assert folders == {f"{name}/{seed}" for name in ("ability", "no-help") for seed in range(3)}

    python, (scout, *report) = shell(0)
    assert (python, scout) == (["python", "compare.py"], "scout")
    assert main(report) == 0
    with (tmp_path / "report/tables/runs-success.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["rule"], row["n"]) for row in rows] == [("ability", "3"), ("no-help", "3")]
    shown = [
        line.strip("| ").split(" | ")
        for line in PAGE.read_text().splitlines()
        if line.startswith(("| rule", "| abi", "| no-"))
    ]
    assert len(shown) == 3
    assert [[row[column] for column in shown[0]] for row in rows] == shown[1:]

    page = (tmp_path / "report/index.html").read_text()
    assert "Nothing may be concluded about no-help (3)" in page
    for what in ('id="frontiers"', 'id="all-runs"', 'id="legend"'):
        assert what in page
    drawn = {path.stem for path in (tmp_path / "report/figures/runs").glob("*.svg")}
    assert {"curves", "worst-curves", "worst-auc", "levels"} <= drawn

    capsys.readouterr()
    ((_, *diagnose),) = shell(1)
    assert main(diagnose) == 0
    (expected,) = blocks("text")
    assert " ".join(expected.split()) in " ".join(capsys.readouterr().out.split())


def test_the_keys_that_the_page_names_are_the_callback_s():
    source = (PAGE.parents[1] / "src/scout_rl/integrations/sb3.py").read_text()
    for key in re.findall(r"`(scout/\w+)", PAGE.read_text()):
        assert f'"{key}' in source, key
