"""What the rule knew, from its records alone: what the curriculum itself says."""

import json

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.report.measure.stuck import cells, find_stuck
from scout_rl.report.read.runs import load
from scout_rl.watch.follow import FollowedRun
from scout_rl.watch.replay import MODEL, RATE, Replay
from scout_rl.watch.waiting import Waits
from tests.watch.planted import GrowingRun


def read(folder):
    run = FollowedRun(folder)
    run.advance()
    return run


def test_the_chances_of_ability_are_those_of_the_curriculum(tmp_path):
    run = GrowingRun(tmp_path / "run").play(60)
    followed = read(run.folder)
    replay = Replay(followed.record())
    assert replay.advance(followed.record())
    run.play(15)
    followed.advance()
    assert replay.advance(followed.record())
    known, chance = replay.chances(), run.curriculum.chance
    np.testing.assert_allclose(known.chance, chance.success)
    logit = np.log(chance.success / (1 - chance.success))
    np.testing.assert_allclose(known.low, 1 / (1 + np.exp(-(logit - chance.error))))
    assert replay.source == MODEL
    assert replay.words() == run.curriculum.reasons


@pytest.mark.parametrize("rule", [rules.Scout(n_min=5), rules.Rfcl(), rules.Wilson()], ids=lambda rule: rule.key)
def test_the_words_of_frontier_rules_are_those_of_the_curriculum(tmp_path, rule):
    run = GrowingRun(tmp_path / "run", rule=rule).play(80)
    record = load(run.folder)
    replay = Replay(record)
    replay.advance(record)
    assert replay.words() == run.curriculum.reasons
    assert replay.source == RATE


def test_a_replay_in_slices_is_the_same(tmp_path):
    record = load(GrowingRun(tmp_path / "run").play(50).folder)
    whole, sliced = Replay(record), Replay(record)
    whole.advance(record)
    answers = 0
    while not sliced.advance(record, 0.0):
        answers += 1
    assert answers == 49
    at = np.arange(8, 51, 7)
    assert whole.teaching(at, 0) == sliced.teaching(at, 0)


def test_rates_by_hand(tmp_path):
    """A cell with the outcomes 1, 0 in one window and 1 in the next: (0.9 * 0.9 + 0 + 1) / (0.81 + 0.9 + 1) = 0.668."""
    run = GrowingRun(tmp_path / "run", kind="log_dir", rule=rules.Random(), n_contexts=2, n_levels=2, episodes=2)
    run.curriculum.report(([0, 0], [1, 1]), [1, 0])
    run.curriculum.report(([0, 1], [1, 0]), [1, 1])
    record = load(run.folder)
    replay = Replay(record)
    replay.advance(record)
    np.testing.assert_allclose(replay.chances().chance, [[np.nan, 1.81 / 2.71], [1.0, np.nan]])
    told = replay.teaching(np.array([1, 2]), 0)
    assert told["source"] == RATE
    assert told["unknown"] == [0.75, 0.5]
    assert told["mastered"] == [0.0, 0.25]
    assert told["rollouts"] == [0.0, 0.0]


def test_rollouts_from_cells_that_teach_nothing_are_counted(tmp_path):
    run = GrowingRun(tmp_path / "run", kind="log_dir", rule=rules.Random(), n_contexts=2, n_levels=2, episodes=4)
    for success in ([1, 1, 1, 1], [1, 1, 1, 1]):
        run.curriculum.report(([0, 0, 0, 1], [1, 1, 1, 0]), success)
    run.curriculum.report(([0, 0, 1, 1], [1, 1, 1, 1]), [1, 1, 0, 0])  # half from a mastered cell
    record = load(run.folder)
    replay = Replay(record)
    replay.advance(record)
    assert replay.teaching(np.array([1, 2, 3]), 0)["rollouts"] == [0.0, 1.0, 0.5]


def test_records_of_another_version_of_the_rule_get_rates(tmp_path):
    """The frontiers were made with other constants than the config says."""
    run = GrowingRun(tmp_path / "run").play(60)
    for name in ("run.json", "config.json"):
        about = json.loads((run.folder / name).read_text())
        (about["config"]["constants"] if name == "run.json" else about["rule"])["own_variance"] = 0.01
        (run.folder / name).write_text(json.dumps(about))
    record = load(run.folder)
    replay = Replay(record)
    assert replay.advance(record)
    assert (replay.source, replay.words()) == (RATE, None)
    assert not np.isnan(replay.chances().chance).all()
    assert len(replay.teaching(np.array([60]), 0)["too_hard"]) == 1


def waits_of(folder):
    record = load(folder)
    replay = Replay(record)
    replay.advance(record)
    stuck = {entry.context: entry for entry in find_stuck(record)}
    waits = Waits(record, cells(record), replay)
    return record, {x: waits.of(x, stuck.get(x)) for x in range(record.about.n_contexts)}, stuck


def test_a_context_that_gathers_says_how_many_outcomes_and_windows(tmp_path):
    """20 contexts, 16 rollouts per window, 15 outcomes needed."""
    run = GrowingRun(tmp_path / "run", rule=rules.Scout()).play(10)
    record, waits, _ = waits_of(run.folder)
    tried = np.bincount(record.rollouts.context, minlength=20)
    assert (record.frontier[-1] == 4).all()
    reasons = run.curriculum.reasons
    p = run.curriculum.distribution().sum(axis=1)
    gathering = [x for x in range(20) if reasons[x] == "gathering"]
    assert gathering
    for x in gathering:
        needed = 15 - tried[x]
        windows = int(np.ceil(needed / (16 * p[x])))
        plurals = "s" if needed > 1 else "", "s" if windows > 1 else ""
        assert waits[x].text == f"needs {needed} more outcome{plurals[0]}, about {windows} window{plurals[1]}"
        assert waits[x].windows == windows


def test_what_the_others_wait_for(tmp_path):
    run = GrowingRun(tmp_path / "run").play(200)
    record, waits, _ = waits_of(run.folder)
    chance, reasons = run.curriculum.chance.success, run.curriculum.reasons
    learning = [x for x in range(20) if reasons[x] == "learning" and record.frontier[-1, x] > 0]
    for x in learning:
        level = record.frontier[-1, x]
        expected = f"needs a chance of 0.50 at level {level - 1}: it is {chance[x, level - 1]:.2f} now"
        assert waits[x].text == expected
    mastered = [x for x in range(20) if reasons[x] == "mastered"]
    assert learning or mastered
    assert all(waits[x].text.startswith("waits for nothing") for x in mastered)


def test_a_hopeless_context_waits_for_its_first_success(tmp_path):
    run = GrowingRun(tmp_path / "run", rule=rules.Scout(n_min=5)).play(100, lambda cells, w: cells.context != 3)
    _, waits, stuck = waits_of(run.folder)
    assert stuck[3].reason == "fails at the easiest"
    assert waits[3].text == "waits for a first success at level 4: there is no easier start"
    without = GrowingRun(tmp_path / "other", rule=rules.Random()).play(5)
    _, waits, _ = waits_of(without.folder)
    assert waits[0].text == "waits for success at the target start: this rule has no frontier"
