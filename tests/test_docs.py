"""The docs are part of the program: no rule, constant, column or reason is missing, and every example runs."""

import dataclasses
import re
from pathlib import Path

import pytest

from scout_rl import Event, rules
from scout_rl.bench.learners.ppo import PPO
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.curriculum import snapshot
from scout_rl.rules import Status
from tests.curriculum.test_curriculum import make

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/concepts.md", "docs/which-rule.md"])
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope = {}
    found = blocks(ROOT / page)
    assert found
    for block in found:  # a page's blocks build on each other
        exec(block.replace('"/tmp/', f'"{tmp_path}/'), scope)
    assert "Curriculum" in scope
    if page == "docs/which-rule.md":
        assert "<Curriculum ability: 20 contexts x 5 levels, window 300" in capsys.readouterr().out
        assert scope["curriculum"].frontier.mean() < 3
    if page == "README.md":  # what a newcomer runs first: at least two of the three cars reach the flag from the valley
        *_, cars = capsys.readouterr().out.splitlines()
        assert cars.count("True") >= 2


@pytest.mark.slow
def test_the_readmes_cars_need_the_help(capsys):
    """The same block with the rule that gives none."""
    (block,) = blocks(ROOT / "README.md")
    exec(block.replace('"ability"', '"target"'), {})
    *_, cars = capsys.readouterr().out.splitlines()
    assert cars.count("False") == 3


def test_every_rule_has_a_row_with_all_its_constants():
    rows = {}
    for line in (ROOT / "docs/rules.md").read_text().splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            rows[cells[0].strip("| `")] = cells
    assert list(rows) == list(rules.RULES)
    for key, cells in rows.items():
        for name, value in rules.make(key).constants().items():
            inherited = "SCOUT's" in cells[2] and rules.Scout().constants().get(name) == value
            assert inherited or name in cells[2], f"docs/rules.md: {key} lacks {name}"
            if not inherited and isinstance(value, int | float):
                assert f"{name} {value:g}" in cells[2].replace(".0,", ","), f"docs/rules.md: {key}'s {name} is {value}"
        assert all(cells[1:4]), f"docs/rules.md: {key} has an empty cell"


def test_every_reason_is_explained():
    page = (ROOT / "docs/concepts.md").read_text()
    for status in Status:
        assert f"`{status.word}`" in page


def test_every_recorded_column_is_documented():
    page = (ROOT / "docs/metrics.md").read_text()
    columns = {"window", "context", "level", "success", "signal", *Event._fields, *snapshot.config(make())}
    for column in columns:
        assert f"`{column}`" in page, f"docs/metrics.md does not say what {column} is"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(there.read_text()), f"{page.name} links to {target}#{anchor}"


def anchors(text):
    """Those that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_shows_the_two_commands():
    page = (ROOT / "README.md").read_text()
    assert "make demo" in page
    assert "make test" in page


def test_every_minigrid_setting_has_a_row_with_its_numbers():
    page = (ROOT / "docs/settings.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for key, found in SETTINGS.items():
        if found.family != "minigrid" or key.endswith("-small"):
            continue
        small = SETTINGS[f"{key}-small"]
        assert found.task in rows[key]
        assert f"| {found.windows} ({small.windows}) |" in rows[key], f"docs/settings.md: budget of {key}"
        for group in found.groups:
            assert len(found.groups) == 1 or f"{group.name} {round(group.share * found.n_train)}" in rows[key]


def test_every_ppo_constant_is_documented():
    page = (ROOT / "docs/settings.md").read_text()
    for field in dataclasses.fields(PPO):
        if field.name not in ("n_actions", "row_fractions"):
            assert f"`{field.name}` {field.default}" in page, f"docs/settings.md lacks {field.name} {field.default}"


def test_every_row_that_differs_from_the_paper_is_looked_into():
    """docs/disagreements.md names the setting and the rule of every such row."""
    page, setting, missing = (ROOT / "docs/disagreements.md").read_text(), "", []
    for line in (ROOT / "docs/reproduction.md").read_text().splitlines():
        if line.startswith("## "):
            setting = line.removeprefix("## ")
        elif line.startswith("| `") and line.endswith(("**weaker** |", "**absent** |", "**reversed** |")):
            rule = line.split("`")[1]
            told = [part for part in re.split(r"^## ", page, flags=re.M) if f"`{setting}`" in part]
            missing += [] if any(rule in part.lower() for part in told) else [f"{setting}: {rule}"]
    assert setting
    assert not missing
