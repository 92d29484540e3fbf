"""The learner model and what it shows; Proposition 1, exactly."""

import itertools

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.rules.cells import Cells
from scout_rl.simulate import (
    SCENARIOS,
    Learner,
    annealing_sweep,
    check_proposition,
    init_skill,
    play,
    practise,
    rule_for,
    success_chance,
)
from scout_rl.simulate.proposition import solves_a, solves_b
from scout_rl.simulate.run import draw
from scout_rl.simulate.view import summarise, table, windows_to_solve


def tiny(**options):
    skill = np.array([[0.1, 0.5, 0.8], [0.2, 0.4, 0.9], [0.1, 0.1, 0.1]])
    rate = np.array([[0.5, 0.1, 0.2], [0.3, 0.3, 0.3], [1.0, 1.0, 1.0]])
    return Learner(skill=skill, rate=rate, kind=np.array([0, 0, 1]), **options)


def test_a_start_succeeds_if_every_stage_after_it_does():
    chance = success_chance(tiny().skill)
    np.testing.assert_allclose(chance[0], [0.1 * 0.5 * 0.8, 0.5 * 0.8, 0.8])


def scalar_practise(learner, skill, outcomes):
    """One seed's window, stage by stage."""
    contexts, levels = skill.shape
    practice = np.zeros((contexts, levels))
    for x, level, success in outcomes:
        for stage in range(levels):
            if success and stage >= level:
                practice[x, stage] += 1
            elif not success and stage == level:
                practice[x, stage] += learner.hindsight
    spread = np.zeros_like(practice)
    for x, j in itertools.product(range(contexts), range(levels)):
        spread[x, j] = practice[x, j]
        for neighbour in (j - 1, j + 1):
            if 0 <= neighbour < levels:
                spread[x, j] += learner.transfer * practice[x, neighbour]
    out = np.zeros_like(skill)
    for x, j in itertools.product(range(contexts), range(levels)):
        others = [spread[y, j] for y in range(contexts) if learner.kind[y] == learner.kind[x]]
        gain = learner.rate[x, j] * ((1 - learner.sharing) * spread[x, j] + learner.sharing * sum(others) / len(others))
        learned = 1 - (1 - skill[x, j]) * np.exp(-gain)
        out[x, j] = learned - learner.forgetting * (learned - learner.skill[x, j])
    return out


def test_practice_against_scalar_loops():
    learner = tiny(transfer=0.2, sharing=0.3, hindsight=0.1, forgetting=0.01)
    rng = np.random.default_rng(0)
    skill = init_skill(learner, 4)
    for _ in range(10):
        cells = Cells(rng.integers(3, size=(4, 9)), rng.integers(3, size=(4, 9)))
        success = rng.random((4, 9)) < 0.5
        after = practise(learner, skill, cells, success)
        for s in range(4):
            outcomes = zip(cells.context[s], cells.level[s], success[s], strict=True)
            np.testing.assert_allclose(after[s], scalar_practise(learner, skill[s], outcomes), atol=1e-14)
        skill = after
    assert (skill > learner.skill).any()


def test_what_is_not_practised_is_forgotten():
    learner = tiny(forgetting=0.1)
    none = Cells(np.zeros((1, 0), int), np.zeros((1, 0), int))
    skill = np.full((1, 3, 3), 0.95)
    for _ in range(200):
        skill = practise(learner, skill, none, np.zeros((1, 0), bool))
    np.testing.assert_allclose(skill[0], learner.skill, atol=1e-8)


def test_cells_are_drawn_from_each_seeds_own_distribution():
    rng = np.random.default_rng(0)
    p = rng.random((3, 4, 5))
    p[0, 0] = 0
    p /= p.sum(axis=(1, 2), keepdims=True)
    cells = draw(rng, p, 50_000)
    for s in range(3):
        counts = np.zeros((4, 5))
        np.add.at(counts, (cells.context[s], cells.level[s]), 1)
        np.testing.assert_allclose(counts / 50_000, p[s], atol=0.01)
        assert (counts[p[s] == 0] == 0).all()


@pytest.mark.parametrize("key", rules.RULES)
def test_runs_repeat_and_learn(key):
    scenario = SCENARIOS["homogeneous"]()
    run = play(rule_for(key, scenario), scenario, seeds=2)
    again = play(rule_for(key, scenario), scenario, seeds=2)
    assert np.array_equal(run.success, again.success)
    assert run.success.shape == (2, 101, 1)
    assert run.level.shape == (101, 40)
    learns = key not in {"target", "fixed"}
    assert (run.success[:, -1, 0] > 0.9).all() == learns


@pytest.mark.slow
def test_the_conflict_structure_of_the_paper():
    scenario = SCENARIOS["conflict"]()
    rows = {key: summarise(play(rule_for(key, scenario), scenario)) for key in ("scout", "anneal", "reverse", "target")}
    assert rows["scout"].worst_final[1] > 0.9  # even the interval's lower end
    assert rows["scout"].solved >= 18
    for synchronized in ("anneal", "reverse", "target"):
        assert rows[synchronized].solved == 0
        assert rows[synchronized].worst_final[2] < 0.8
    for _, run in annealing_sweep(scenario):  # no other pace solves both groups either
        assert summarise(run).solved == 0


def test_a_pooled_frontier_fails_within_a_group():
    scenario = SCENARIOS["within-group"]()
    pooled = summarise(play(rule_for("group-frontier", scenario), scenario))
    local = summarise(play(rule_for("scout", scenario), scenario))
    assert pooled.worst_final[2] < 0.05
    assert pooled.group_final[0] > 0.95  # the low band is fine, and hides it
    assert local.worst_final[1] > 0.9


def test_one_hopeless_context_does_not_hold_the_others_up():
    scenario = SCENARIOS["hopeless"]()
    run = play(rule_for("scout", scenario), scenario)
    row = summarise(run)
    assert row.solved == 20
    assert row.unevaluated < 1 / 40  # less than its uniform share
    assert run.level[-1][-1] == 4  # it stays at the easiest level


def test_windows_to_solve_needs_to_hold():
    windows = np.arange(0, 70, 10)
    assert windows_to_solve(windows, np.array([0, 0.95, 0.5, 0.95, 0.85, 0.81, 0.9])) == 30
    assert windows_to_solve(windows, np.array([0, 0, 0, 0, 0, 0.95, 0.95])) is None  # not two evaluations more
    assert windows_to_solve(windows, np.zeros(7)) is None


def test_the_table_has_a_row_a_rule():
    scenario = SCENARIOS["hopeless"]()
    header, rows = table(scenario, [play(rule_for("target", scenario), scenario, seeds=2)])
    assert header[-1] == "rollouts on the unevaluated"
    assert rows[0][0] == "target"
    assert len(rows[0]) == len(header)


@pytest.mark.parametrize("K", [2, 3, 7, 12])
def test_proposition_by_brute_force(K):
    result = check_proposition(K)
    schedules = list(itertools.product((0, 1), repeat=K + 1))
    solved = [(solves_a(sum(s), K), solves_b(sum(s), K)) for s in schedules]
    assert result.schedules == len(schedules) == 2 ** (K + 1)
    assert result.solving_both == sum(a and b for a, b in solved) == 0
    assert result.solving_one == sum(a != b for a, b in solved) == 2 * (K + 1)  # one assisted, or all but one
    assert result.holds


def test_proposition_for_large_K_counts_every_schedule():
    result = check_proposition(1000)
    assert result.schedules == 2**1001
    assert result.holds
    assert result.solving_one == 2 * 1001


def test_a_local_schedule_can_do_what_no_shared_one_can():
    for K in range(2, 30):
        shared = [(solves_a(n, K), solves_b(n, K)) for n in range(K + 2)]
        assert not any(a and b for a, b in shared)
        assert any(a for a, _ in shared)
        assert any(b for _, b in shared)
    with pytest.raises(ValueError, match="K > 1"):
        check_proposition(1)
