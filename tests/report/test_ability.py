"""Records of the rule `ability`, from the log_dir to the picture, the page, the diagnosis, and the docs' commands."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.cli import main
from scout_rl.report.build import report
from scout_rl.report.diagnose import diagnose
from scout_rl.report.measure.stuck import has_model
from scout_rl.report.read.runs import load
from scout_rl.report.read.statuses import WORDS, window_statuses
from scout_rl.report.show.page import MEANING
from scout_rl.rules.cells import Cells
from scout_rl.simulate.model import init_skill, practise, success_chance
from scout_rl.simulate.scenarios import SCENARIOS
from tests.report.browser import CHROMIUM, Browser
from tests.report.planted import play
from tests.report.test_diagnose import planted

PAGE = Path(__file__).parents[2] / "docs/report.md"
LABELS = ["low"] * 28 + ["high"] * 12


def trained(folder, rule, *, windows=60, rollouts=512, seed=0):
    """The learner model under ``rule``: large windows, so that frontiers move several levels at once."""
    bank = SCENARIOS["within-group"]()
    curriculum = Curriculum(rule, bank.n_contexts, bank.n_levels, seed=seed, log_dir=folder)
    rng, skill = np.random.default_rng([seed, 77]), init_skill(bank.learner, 1)
    for window in range(windows + 1):
        if window % 10 == 0:
            curriculum.evaluation(rng.random(40) < success_chance(skill)[0, :, 0], LABELS)
        if window < windows:
            cells = curriculum.assign(rollouts)
            success = rng.random(rollouts) < success_chance(skill)[0, cells.context, cells.level]
            skill = practise(bank.learner, skill, Cells(cells.context[None], cells.level[None]), success[None])
            curriculum.report(cells, success)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ability")
    trained(folder / "results/ability", rules.Ability())
    trained(folder / "results/random", rules.Random())
    return folder


def test_its_moves_and_words_are_read_again(runs):
    run = load(runs / "results/ability")
    moves = run.moves
    assert (abs(run.frontier[moves.window, moves.context] - moves.from_level) > 1).any()
    statuses = window_statuses(run)  # the rule reaches the recorded frontiers again
    words = {WORDS[status] for status in np.unique(statuses)}
    assert words <= {"learning", "mastered", "too hard at the easiest level", "seldom drawn", "advanced", "retreated"}
    assert {"learning", "advanced"} <= words
    assert set(WORDS) == set(MEANING)


def test_the_picture(runs):
    assert main(["picture", str(runs / "results/ability")]) == 0
    assert (runs / "results/ability/frontier.png").stat().st_size > 20_000


def test_the_diagnosis(runs, capsys):
    assert main(["diagnose", str(runs / "results/ability")]) == 0
    printed = capsys.readouterr().out
    assert "ability): two paces; 12 contexts at -" in printed
    assert "28 contexts at +" in printed
    assert "waited for rollouts" not in printed  # no evidence gate
    assert "oscillates" not in printed


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")
def test_the_page_in_a_browser(runs, tmp_path):
    page = report([runs / "results"], tmp_path / "out")
    frontier = load(runs / "results/ability").frontier
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        browser.until("document.body.dataset.drawn")
        browser.value("document.getElementById('sort').value = 'bank'; document.getElementById('sort').onchange")
        browser.value("document.getElementById('sort').dispatchEvent(new Event('change'))")
        browser.value("document.getElementById('heat').focus()")
        seen = []
        for _ in range(40):
            browser.press("ArrowRight")
            seen.append(
                browser.value("[...document.getElementById('tip').children].map((e) => e.textContent).join('|')")
            )
        assert browser.errors == []
    finally:
        browser.close()
    for text in seen:
        window, context, level = map(int, re.match(r"window (\d+), context (\d+).*?\|level (\d+)", text).groups())
        assert frontier[window - 1, context] == level
    assert any("reason: learning" in text or "reason: seldom drawn" in text for text in seen)


CASES = {
    "fails at the easiest": lambda level, window: np.zeros(len(level)),
    "lost the target": lambda level, window: np.where((level > 0) | (window < 110), 0.97, 0.02),
    "never succeeds": lambda level, window: np.where(level > 1, 0.97, 0.0),
}


@pytest.mark.parametrize("reason", CASES)
def test_a_stuck_context_and_its_reason(tmp_path, reason):
    run = load(play(tmp_path / "run", planted(3, CASES[reason]), rule=rules.Ability(), n_contexts=8, windows=260))
    assert [(stuck.context, stuck.reason) for stuck in diagnose(run).stuck] == [(3, reason)]


def test_rules_whose_frontier_is_a_models():
    with_frontier = [key for key, rule in rules.RULES.items() if key != "group-frontier" and has_frontier(rule())]
    assert [key for key in with_frontier if has_model(key)] == ["ability"]


def has_frontier(rule):
    return rule.frontier(rule.init(4, 5)) is not None


def test_the_commands_of_the_page(runs, tmp_path, monkeypatch, capsys):
    """The commands at the top of docs/report.md, on records of that name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(runs / "results")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/my-run").symlink_to(runs / "results/ability")
    commands = re.search(r"```\n(scout .*?)```", PAGE.read_text(), re.S)[1].splitlines()
    assert [command.split()[1] for command in commands] == ["report", "report", "diagnose"]
    for command in commands:
        assert main(shlex.split(command, comments=True)[1:]) == 0, command
    assert (
        "random&#x27;s" in (tmp_path / "out/report/index.html").read_text()
        or "Δ random" in (tmp_path / "out/report/index.html").read_text()
    )
    assert "The model's view" in capsys.readouterr().out
