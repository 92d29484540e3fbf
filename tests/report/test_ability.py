"""Records of the rule `ability`, from the log_dir to the picture, the page, the diagnosis, and the docs' commands."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.cli import main
from scout_rl.report.build import report
from scout_rl.report.diagnose import diagnose
from scout_rl.report.measure.comparison import mechanism_table, scores
from scout_rl.report.measure.conditions import group, with_names
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.measure.solving import solving_table
from scout_rl.report.measure.stuck import has_model
from scout_rl.report.read.runs import find, load
from scout_rl.report.read.statuses import MEANING, WORDS, window_statuses
from scout_rl.report.show.figure_data import level_shares, training_groups
from scout_rl.report.show.figures import draw_all
from scout_rl.rules.cells import Cells
from scout_rl.simulate.model import init_skill, practise, success_chance
from scout_rl.simulate.scenarios import SCENARIOS
from tests.browser import CHROMIUM, Browser
from tests.report.planted import play
from tests.report.test_diagnose import planted

PAGE = Path(__file__).parents[2] / "docs/report.md"
ROWS = "document.getElementById('rows').textContent"
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


def test_where_training_happened_is_where_rollouts_started(runs):
    """Not where frontiers were: these are read off the model. Counted again from the rows that the loop wrote."""
    run = load(runs / "results/ability")
    rows = [json.loads(line) for line in (runs / "results/ability/windows.jsonl").read_text().splitlines()]
    count = np.array([np.bincount(row["level"], minlength=5) for row in rows])
    (block,) = group(with_names([summarise(load(runs / "results" / name)) for name in ("ability", "random")]))
    table = mechanism_table(block)
    shares = count.sum(axis=0) / count.sum()
    assert [table.column(f"level {i}")[0] for i in range(5)] == [f"{share:.0%}" for share in shares]
    assert abs(shares - np.bincount(run.frontier.ravel(), minlength=5) / run.frontier.size).max() > 0.05
    assert "Under ability a frontier is what the model expects to succeed, not where rollouts start." in table.notes[0]
    assert "--groups" in table.notes[1]

    x, drawn = level_shares(block.conditions[0], "all")  # two windows per column
    assert (x[0], x[1], x[-1]) == (0, 1, 60)
    assert drawn[1] == pytest.approx(count[:2].sum(axis=0) / 1024)
    assert drawn[-1] == pytest.approx(count[-2:].sum(axis=0) / 1024)
    figures = {figure.name: figure.caption for figure in draw_all(block, scores(block))}
    assert figures["levels"].startswith("Where each rule trains: rollouts by the level that they start from")
    assert figures["frontier"].startswith("Mean frontier under ability")
    assert figures["frontier"].endswith("not where rollouts start.")


def test_own_loops_have_no_empty_columns(runs):
    """A log_dir knows no environment steps and no minutes."""
    (block,) = group(with_names([summarise(load(runs / "results" / name)) for name in ("ability", "random")]))
    assert solving_table(block).header == ["rule", "n", "got there", "did not (seeds)", "windows"]
    assert mechanism_table(block).header[-2:] == ["reversals per context", "frontiers at 0"]


def test_levels_of_labelled_groups_and_of_seeds_of_unlike_length(tmp_path):
    for seed, windows in ((0, 60), (1, 90)):
        trained(tmp_path / f"{seed}", rules.Ability(), windows=windows, seed=seed)
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    labelled = [summarise(load(path, groups=tmp_path / "labels.json")) for path in find([tmp_path])]
    (block,) = group(with_names(labelled))
    assert training_groups(block) == ["low", "high"]
    (low, high) = (level_shares(block.conditions[0], name) for name in ("low", "high"))
    assert low.x[-1] == 60
    assert low.share.sum(axis=1) == pytest.approx(1)
    assert (low.share[:, 0] - high.share[:, 0]).max() > 0.3  # the low band is sooner at the target start
    (plain,) = group(with_names([labelled[0], summarise(load(tmp_path / "1"))]))
    assert training_groups(plain) == ["all"]
    both = (labelled[0].rollouts["low"] + labelled[0].rollouts["high"])[0]
    other = summarise(load(tmp_path / "1")).rollouts["all"][0]
    expected = (both / both.sum() + other / other.sum()) / 2
    assert level_shares(plain.conditions[0], "all").share[0] == pytest.approx(expected)


def test_the_diagnosis(runs, capsys):
    assert main(["diagnose", str(runs / "results/ability")]) == 0
    printed = capsys.readouterr().out
    assert "The bank has two paces (the model's view" in printed
    assert re.search(r"ability\): 12 contexts at -[\d.]+ \(\d+%\), 28 contexts at \+", printed)
    assert "waited for rollouts" not in printed  # no evidence gate
    assert "oscillates" not in printed


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")
def test_the_page_in_a_browser(runs, tmp_path):
    page = report([runs / "results"], tmp_path / "out")
    run = load(runs / "results/ability")
    frontier, rollouts = run.frontier, run.rollouts
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
        # the other view: rollouts, which do not all start from the frontier
        assert not browser.value("document.getElementById('view').hidden")
        assert "colour: frontier (rollouts start from other levels too)" in browser.value(ROWS)
        browser.value("document.getElementById('view').value = 'trained'")
        browser.value("document.getElementById('view').dispatchEvent(new Event('change'))")
        browser.until(f"{ROWS}.includes('colour: mean level of rollouts')")
        browser.press("ArrowRight")
        trained = browser.value("document.getElementById('tip').innerText").splitlines()
        browser.value("document.getElementById('next').click()")
        browser.until("document.body.dataset.drawn.endsWith('random')")
        assert browser.value("document.getElementById('view').hidden")
        assert browser.errors == []
    finally:
        browser.close()
    (of_first,) = np.nonzero((rollouts.window == 1) & (rollouts.context == 0))
    level, won = rollouts.level[of_first].mean(), rollouts.success[of_first].sum()
    succeeded = f"{won} of {len(of_first)} rollouts succeeded in this window"
    assert trained == ["window 2, context 0", f"level {level:.1f} on average", succeeded]
    for text in seen:
        numbers = re.match(r"window (\d+), context (\d+).*?\|frontier at level (\d+)", text).groups()
        window, context, level = map(int, numbers)
        assert frontier[window - 1, context] == level
    moves = [text for text in seen if re.search(r"\|event: (advance|retreat) from", text)]
    assert moves
    assert all("reason: the model's estimate changed; " in text for text in moves)
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
    assert "the model's view" in capsys.readouterr().out
