"""Planted runs, one for each verdict and each reason to be stuck; the curriculum is real, the learner a formula."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.cli import main
from scout_rl.report.diagnose import VERDICTS, WAITING, diagnose
from scout_rl.report.measure import pacing
from scout_rl.report.measure.stuck import REASONS, gate_constant
from scout_rl.report.read.runs import load
from scout_rl.rules.cells import Cells
from scout_rl.simulate.model import init_skill, practise, success_chance
from scout_rl.simulate.scenarios import SCENARIOS
from tests.report.planted import load_labelled, play, steadily

HALVES = (("a", "b"), np.repeat([0, 1], 20))


def same(context):
    return np.ones(len(context))


def by_group(context):
    return np.where(context < 20, 1.0, 2.5)


def every_other(context):
    return np.where(context % 2, 1.0, 2.5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("pace", "labels", "verdict"),
    [
        (same, HALVES, "global"),
        (same, None, "global"),
        (by_group, HALVES, "group"),
        (by_group, None, "unlabelled"),
        (every_other, HALVES, "context"),  # both groups hold fast and slow contexts
    ],
)
def test_the_pace_that_was_planted_is_found(tmp_path, pace, labels, verdict, seed):
    diagnosis = diagnose(load_labelled(play(tmp_path / "run", steadily(pace), seed=seed), labels))
    assert diagnosis.verdict == verdict
    assert VERDICTS[verdict] in diagnosis.sentences()


@pytest.mark.parametrize(("pace", "verdict"), [(same, "global"), (by_group, "group"), (every_other, "context")])
def test_rules_without_frontiers_are_judged_by_success(tmp_path, pace, verdict):
    """Random levels: contexts that need longer fail where the others succeed already."""
    diagnosis = diagnose(load_labelled(play(tmp_path / "run", steadily(pace), rule=rules.Random()), HALVES))
    assert not diagnosis.pacing.own_frontiers
    assert diagnosis.verdict == verdict


def test_a_pooled_frontier_cannot_hide_differences(tmp_path):
    """Its contexts all stand at one level, so dispersion is 0; their success still gives them away."""
    folder = play(tmp_path / "run", steadily(every_other), rule=rules.GroupFrontier(), oracle_group=HALVES[1])
    diagnosis = diagnose(load_labelled(folder, HALVES))
    assert diagnosis.verdict == "context"
    assert "no frontiers of their own" in " ".join(diagnosis.sentences())


@pytest.mark.parametrize("idle", [0, 600])
def test_groups_that_overtake_each_other_are_apart(idle):
    """Half stands at level 4 and then at 0, half at 2 all the time: equal on average over time, two levels apart.

    What comes after all have arrived says nothing, however long it is.
    """
    group = HALVES[1]
    frontier = np.full((210, len(group)), 2, np.int8)
    frontier[:105, group == 1], frontier[105:, group == 1] = 4, 0
    frontier = np.concatenate([frontier, np.zeros((idle, len(group)), np.int8)])
    difference = pacing.levels_between_groups(SimpleNamespace(frontier=frontier), group, np.random.default_rng(0))
    assert difference.size == pytest.approx(2, abs=0.25)  # the period of the change, and the last, are mixed
    assert difference.beyond_chance


def test_groups_of_a_run_that_has_arrived_are_not_apart():
    frontier = np.zeros((100, 40), np.int8)
    frontier[:, 3] = 4  # one that is stuck
    difference = pacing.levels_between_groups(SimpleNamespace(frontier=frontier), HALVES[1], np.random.default_rng(0))
    assert (difference.size, difference.p) == (0.0, 1.0)


def learning(context, level, window):
    return np.clip(window / 150 - 0.2 + 0.15 * level, 0.02, 0.95)


def test_the_test_of_contexts_keeps_its_level(tmp_path):
    """On runs without any difference p is spread over 0..1, though frontiers stop rollouts by their success."""
    p = []
    for seed in range(12):
        run = load(play(tmp_path / str(seed), learning, windows=150, seed=seed))
        p.append(pacing.success_between_contexts(run, np.zeros(40, int), np.random.default_rng(seed)).p)
    assert sum(q < 0.1 for q in p) <= 4
    assert max(p) > 0.4


@pytest.mark.parametrize("rule", [rules.Scout(), rules.Random()], ids=lambda rule: rule.key)
def test_one_hopeless_context_is_stuck_and_no_reason_for_other_paces(tmp_path, rule):
    def ready(context, level, window):
        return np.where(context == 7, 0.0, learning(context, level, window))

    diagnosis = diagnose(load_labelled(play(tmp_path / "run", ready, rule=rule), HALVES))
    assert diagnosis.verdict == "global"
    assert [stuck.context for stuck in diagnosis.stuck] == [7]


def test_nothing_is_said_where_nothing_can_be(tmp_path):
    failing = diagnose(load(play(tmp_path / "a", lambda c, level, w: 0.0, rule=rules.Target(), windows=80)))
    assert failing.verdict == "unknown"
    assert failing.pacing is None
    short = diagnose(load(play(tmp_path / "b", steadily(same), windows=20)))
    assert short.verdict == "unknown"


def on_the_learner_model(folder, scenario, rule, seed):
    curriculum = Curriculum(rule, scenario.n_contexts, scenario.n_levels, seed=seed, log_dir=folder)
    rng, skill = np.random.default_rng([seed, 77]), init_skill(scenario.learner, 1)
    for _ in range(scenario.windows):
        cells = curriculum.assign(scenario.rollouts)
        success = rng.random(scenario.rollouts) < success_chance(skill)[0, cells.context, cells.level]
        skill = practise(scenario.learner, skill, Cells(cells.context[None], cells.level[None]), success[None])
        curriculum.report(cells, success)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("rule", [rules.Scout(), rules.Random()], ids=lambda rule: rule.key)
@pytest.mark.parametrize(
    ("key", "labelled", "verdict"),
    [
        ("homogeneous", False, "global"),
        ("conflict", True, "group"),
        ("within-group", False, "context"),  # one label for all, two bands inside it
        ("within-group", True, "group"),
        ("hopeless", False, "global"),
    ],
)
def test_banks_that_the_thresholds_were_not_chosen_on(tmp_path, key, labelled, verdict, rule):
    """The scenarios of `scout simulate`, made before there was a diagnosis; what they are is written in their file."""
    scenario = SCENARIOS[key]()
    labels = (scenario.group_names, scenario.evaluation_group) if labelled else (("all",), np.zeros(40, np.int64))
    assert (
        diagnose(load_labelled(on_the_learner_model(tmp_path / "run", scenario, rule, 300), labels)).verdict == verdict
    )


def planted(x, special, otherwise=0.97):
    """All contexts succeed everywhere, but for context 3."""

    def ready(context, level, window):
        return np.where(context == x, special(level, window), otherwise)

    return ready


def zero_at_target(level, window):
    return np.where(level == 0, 0.0, 0.97)


def rare_at_target(level, window):
    return np.where(level == 0, 0.12, 0.97)


def forgets(level, window):
    return np.full(len(level), 0.97 if window < 110 else 0.02)


CASES = {
    "never succeeds": (zero_at_target, {}),
    "oscillates": (rare_at_target, {}),
    "fails at the easiest": (lambda level, window: np.zeros(len(level)), {}),
    "lost the target": (forgets, {"windows": 150}),
    "undecided": (lambda level, window: np.where(level >= 3, 0.45, 0.02), {"rule": rules.LocalFrontier(beta=0.05)}),
    "fails at the target": (lambda level, window: np.where(level == 0, 0.0, 1.0), {"rule": rules.Aced()}),
}


@pytest.mark.parametrize("reason", CASES)
def test_a_stuck_context_and_its_reason(tmp_path, reason):
    special, options = CASES[reason]
    diagnosis = diagnose(
        load(play(tmp_path / "run", planted(3, special), n_contexts=8, **({"windows": 260} | options)))
    )
    assert [(stuck.context, stuck.reason) for stuck in diagnosis.stuck] == [(3, reason)]
    text = "\n".join(diagnosis.sentences())
    assert REASONS[reason] in text
    assert "for example 3" in text


@pytest.mark.filterwarnings("ignore:scout. nothing can move:UserWarning")
def test_too_little_evidence(tmp_path):
    """200 contexts, 4 rollouts a window, 60 windows: nobody can have 15 outcomes at a level."""
    diagnosis = diagnose(load(play(tmp_path / "run", lambda c, level, w: 0.9, n_contexts=200, windows=60, rollouts=4)))
    reasons = {stuck.reason for stuck in diagnosis.stuck}
    assert reasons <= {"evidence missing", "no rollouts"}
    assert len(diagnosis.stuck) == 200
    assert "of 15 rollouts at level 4" in " ".join(stuck.evidence for stuck in diagnosis.stuck)
    assert "The evidence gate sets the pace" in " ".join(diagnosis.sentences())
    assert "larger windows or a smaller n_min frontiers would move" in " ".join(diagnosis.sentences())


@pytest.mark.filterwarnings("ignore:rfcl. nothing can move:UserWarning")
def test_the_gate_is_named_after_the_rules_constant(tmp_path):
    played = play(tmp_path, lambda c, level, w: 0.9, rule=rules.Rfcl(needed=5), n_contexts=200, windows=200, rollouts=4)
    assert "larger windows or a smaller needed frontiers would move" in " ".join(diagnose(load(played)).sentences())
    assert gate_constant("someone's own") == ""


def test_a_context_without_rollouts(tmp_path):
    diagnosis = diagnose(
        load(play(tmp_path / "run", lambda c, level, w: 0.9, rule=rules.Random(), n_contexts=300, windows=10))
    )
    assert {stuck.reason for stuck in diagnosis.stuck} == {"no rollouts"}


def test_a_healthy_run_has_nobody_stuck(tmp_path):
    diagnosis = diagnose(load(play(tmp_path / "run", lambda c, level, w: 0.95, n_contexts=8, windows=200)))
    assert diagnosis.stuck == []
    assert "No context is stuck." in diagnosis.sentences()


def test_what_contexts_waited_for_is_always_told(tmp_path):
    """Eight contexts with plenty of rollouts and a level that none gets past: evidence is there, success is not."""
    diagnosis = diagnose(load(play(tmp_path / "run", lambda c, level, w: np.where(level > 2, 0.9, 0.4), n_contexts=8)))
    assert 0 < diagnosis.pacing.gathering < WAITING
    assert f"{diagnosis.pacing.gathering:.0%} of the time above the target start" in " ".join(diagnosis.sentences())
    assert "The evidence gate sets the pace" not in " ".join(diagnosis.sentences())


def test_the_command(tmp_path, capsys):
    play(tmp_path / "run", steadily(by_group))
    (tmp_path / "labels.json").write_text(json.dumps(["near"] * 20 + ["far"] * 20))
    assert main(["diagnose", str(tmp_path / "run"), "--groups", str(tmp_path / "labels.json")]) == 0
    printed = capsys.readouterr().out
    assert "scout, seed 0, 40 contexts, 5 levels, 300 windows." in printed
    assert VERDICTS["group"] in printed
    assert "Groups near, far" in printed
    assert main(["diagnose", str(tmp_path / "nothing")]) == 2
    assert "holds no records" in capsys.readouterr().err


def test_windows_have_their_true_numbers_after_a_restore(tmp_path):
    """Restored at window 60 into a new log_dir, as one goes on elsewhere; context 3 forgets 20 windows later."""
    first = Curriculum(rules.Scout(), 8, 5, window=16, seed=0)

    def go_on(curriculum, windows):
        rng = np.random.default_rng(curriculum.windows)
        for _ in range(windows):
            cells = curriculum.assign(16)
            lost = (cells.context == 3) & (curriculum.windows >= 80)
            curriculum.report(cells, rng.random(16) < np.where(lost, 0.02, 0.97))

    go_on(first, 60)
    assert (first.frontier == 0).all()
    second = Curriculum(rules.Scout(), 8, 5, window=16, seed=0, log_dir=tmp_path / "new")
    second.load_state_dict(first.state_dict())
    go_on(second, 60)
    diagnosis = diagnose(load(tmp_path / "new"))
    assert [(stuck.context, stuck.reason) for stuck in diagnosis.stuck] == [(3, "lost the target")]
    assert "at level 0 in window 61, at level" in diagnosis.stuck[0].evidence
    assert "60 windows from window 61 on." in diagnosis.sentences()[0]


def test_one_context_is_not_called_contexts(tmp_path):
    never = play(tmp_path / "run", lambda context, level, window: 0.0, n_contexts=1, windows=120)
    text = "\n".join(diagnose(load(never)).sentences())
    assert "seed 0, 1 context, 5 levels, 120 windows." in text
    assert "Stuck: 1 of 1 context." in text
    assert "    context 0; for example 0" in text
