"""Where the rule `ability` could go wrong: caps, a hopeless context, a lost stage, a gap, a huge bank, unlike levels.

A comparison of speed is one of windows to solve: geometric means over 12 seeds, an unsolved seed counts as the budget.
"""

import dataclasses

import numpy as np
import pytest
from benchmarks.scenarios import RULES, Cell, main, mean_windows_to_solve, measure, named, table

from scout_rl import rules
from scout_rl.rules.cells import Cells
from scout_rl.simulate import SCENARIOS, Learner, init_skill, play, success_chance
from scout_rl.simulate import run as running
from scout_rl.simulate.model import lose_stage
from scout_rl.simulate.run import SimulatedRun
from scout_rl.simulate.scenarios import capped_contexts, capped_level, hopeless

SEEDS = 12


def windows(scenario):
    """Mean windows to solve of `ability`."""
    return mean_windows_to_solve(scenario, play(rules.Ability(), scenario, seeds=SEEDS))


def thinned(cap, rng):
    """Practice where only this share of the successes from level 2 counts."""
    practise = running.practise

    def practise_less(learner, skill, cells, success):
        return practise(learner, skill, cells, success & ((cells.level != 2) | (rng.random(success.shape) < cap)))

    return practise_less


# -- the additions to the model ----------------------------------------------------------------------------------------


def test_a_cap_is_a_factor_of_success():
    skill = np.array([[0.5, 0.8], [0.9, 1.0]])
    cap = np.array([[1.0, 0.5], [0.5, 0.25]])
    np.testing.assert_allclose(success_chance(skill, cap), [[0.4, 0.4], [0.45, 0.25]])


def test_a_lost_stage_is_as_before_any_practice():
    learner = Learner(skill=np.full((3, 4), 0.1), rate=np.ones((3, 4)), kind=np.zeros(3, np.int64))
    skill = init_skill(learner, 2) + 0.5
    lost = lose_stage(learner, skill, 1)
    assert (lost[..., 1] == 0.1).all()
    assert (lost[..., [0, 2, 3]] == 0.6).all()
    assert (skill == 0.6).all()  # the caller's is not changed


def test_the_loss_is_seen_at_its_window_and_not_before():
    lost, kept = SCENARIOS["lost-skill"](), SCENARIOS["homogeneous"]()
    rule = rules.Ability()
    with_loss, without = play(rule, lost, seeds=2), play(rule, kept, seeds=2)
    assert np.array_equal(with_loss.success[:, :50], without.success[:, :50])
    assert (with_loss.success[:, 50] < 0.1).all()
    assert (without.success[:, 50] > 0.9).all()


def test_no_cap_is_a_cap_of_one():
    """Nothing about a scenario without a cap changed: the same bank with all caps at 1 has the same numbers."""
    run, capped = (play(rules.Ability(), s, seeds=2) for s in (SCENARIOS["homogeneous"](), capped_level(1.0)))
    assert np.array_equal(run.success, capped.success)


def test_mean_windows_by_hand():
    """Solved at 10 and never, of 40 windows: the root of 10 * 40. Counted from a loss at 20: 10 and 30."""
    at = np.arange(0, 50, 10)
    worst = np.array([[0, 1, 1, 1, 1], [0.0] * 5])[..., None]
    scenario = SCENARIOS["homogeneous"]()
    run = SimulatedRun("x", at, worst, np.zeros((5, 1), np.float32), np.zeros(2))
    budget = dataclasses.replace(scenario, windows=40)
    assert mean_windows_to_solve(budget, run) == pytest.approx(20)
    assert mean_windows_to_solve(budget, run._replace(success=worst[1:])) is None
    again = np.array([[0, 1, 0, 1, 1, 1], [0.0] * 6])[..., None]
    lost = run._replace(windows=np.arange(0, 60, 10), success=again)
    budget = dataclasses.replace(scenario, windows=50, lose=(20, 1))
    assert mean_windows_to_solve(budget, lost) == pytest.approx(np.sqrt(10 * 30))


# -- what `ability` does in them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "cap"),
    [
        (capped_contexts, 0.5),
        (capped_contexts, 0.8),
        pytest.param(
            *(capped_level, 0.5),
            marks=pytest.mark.xfail(
                strict=True,
                reason="1.23 times as long, the aim is 1.2: halved success at a level teaches half as fast there",
            ),
        ),
        (capped_level, 0.8),
    ],
)
def test_a_cap_costs_at_most_a_fifth(make, cap):
    assert windows(make(cap)) <= 1.2 * windows(make(1.0))


def test_how_much_of_a_capped_level_no_rule_can_avoid(monkeypatch):
    """The learner gets the capped successes, the rule the uncapped ones: the cost is 1.16 without any mistake of its.

    A rule that hears of the capped outcomes takes at most a tenth longer than that.
    """
    free, capped = windows(capped_level(1.0)), windows(capped_level(0.5))
    monkeypatch.setattr(running, "practise", thinned(0.5, np.random.default_rng(5)))
    informed = windows(capped_level(1.0))
    assert 1.1 * free < informed < 1.2 * free
    assert capped < 1.1 * informed


def test_thinned_practice_is_that_of_a_cap(monkeypatch):
    """Level 2 loses every success with a cap of 0; other levels lose none."""
    learner = Learner(skill=np.full((1, 3), 0.5), rate=np.ones((1, 3)), kind=np.zeros(1, np.int64), hindsight=0.0)
    practise, less = running.practise, thinned(0.0, np.random.default_rng(0))
    skill, success = init_skill(learner, 1), np.ones((1, 1), bool)
    for level in range(3):
        cells = Cells(np.array([[0]]), np.array([[level]]))
        full = practise(learner, skill, cells, success)
        assert np.array_equal(less(learner, skill, cells, success), full) == (level != 2)


def test_a_hopeless_context_does_not_delay_the_others():
    assert windows(hopeless()) <= 1.1 * windows(hopeless(never=0))


def test_the_gap_is_one():
    """Neither side of it is enough: the target start alone seldom solves it, and level 1 alone teaches it nothing."""
    scenario = SCENARIOS["gap"]()
    chance = success_chance(scenario.learner.skill)
    assert (chance[:, 1] > 0.05).all()
    assert (chance[:, 0] < 1e-4).all()
    final = play(rules.Target(), scenario, seeds=SEEDS).success[:, -1].mean()
    assert final < 0.6
    assert scenario.learner.transfer == 0
    assert (play(rules.Ability(), scenario, seeds=SEEDS).success[:, -1] > 0.85).all()


def test_a_lost_stage_comes_back():
    run = play(rules.Ability(), SCENARIOS["lost-skill"](), seeds=SEEDS)
    assert (run.success[:, -1] > 0.95).all()
    assert mean_windows_to_solve(SCENARIOS["lost-skill"](), run) < 150  # 84, of the 500 that are left


@pytest.mark.slow
@pytest.mark.parametrize("bank", ["which-level", "huge-bank", "gap"])
def test_first_or_level_among_rules_without_labels(bank):
    """Within 1.15 of every other; the numbers stand in docs/concepts.md."""
    cells = {name: measure(bank, name, SEEDS) for name in RULES}
    budget = SCENARIOS[bank]().windows
    assert cells["ability"].windows is not None
    for name, cell in cells.items():
        assert cells["ability"].windows <= 1.15 * (budget if cell.windows is None else cell.windows), name


# -- the table ---------------------------------------------------------------------------------------------------------


def test_a_row_of_the_table_by_hand():
    cells = {
        ("gap", "a"): Cell(120.4, 0.5, 0.914),
        ("gap", "b"): Cell(None, 0.25, 0.5),
        ("x", "a"): Cell(None, 0.0, 0.0),
        ("x", "b"): Cell(None, 0.0, 0.0),
    }
    assert table(cells, ["gap", "x"], ["a", "b"]).splitlines()[2:] == [
        "| gap | **120** / 0.50 / 0.91 | never / 0.25 / 0.50 |",
        "| x | never / 0.00 / 0.00 | never / 0.00 / 0.00 |",
    ]


def test_a_rule_with_a_constant():
    scenario = SCENARIOS["gap"]()
    assert named("scout n_min=5", scenario) == rules.Scout(n_min=5)
    assert named("anneal", scenario) == rules.Anneal(T_anneal=1000)


def test_the_script_prints_a_table(monkeypatch, capsys):
    words = [
        "--scenario",
        "hopeless",
        "capped-level 0.8",
        "--rule",
        "ability",
        "target",
        "--seeds",
        "2",
        "--workers",
        "1",
    ]
    monkeypatch.setattr("sys.argv", ["scenarios", *words])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| scenario | `ability` | `target` |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| hopeless", "| capped-level 0.8"]
    assert all("never" in line.split(" | ")[2] for line in lines[2:])
