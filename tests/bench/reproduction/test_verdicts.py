"""Rows beside the paper: which records answer them, what is compared with what, and the verdict."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scout_rl.bench.reproduction import judging, paper, verdicts
from scout_rl.report.measure.comparison import evaluated
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.measure.retention import retention
from scout_rl.report.read.runs import find, load
from tests.report.planted import CATALOGUE, blocks_of, curve, written

AT = np.arange(0, 121, 20)
RESULTS = Path(__file__).parents[3] / "results"
GPU = {"ran_on": {"backend": "gpu", "device": "Loom 2"}}


@pytest.fixture(scope="module")
def committed():
    """Every row's answer from the committed records, and the blocks."""
    runs = [summarise(load(path, catalogue=CATALOGUE)) for path in find([RESULTS])]
    blocks = [block for block in map(evaluated, group(runs)) if block is not None]
    return [verdicts.answer(asked, blocks) for asked in verdicts.rows()], blocks


def row(setting, rule, metric, **others):
    return verdicts.Row(setting=setting, rule=rule, metric=metric, **others)


@pytest.mark.parametrize(
    ("mixture", "verdict"),
    [
        (0.1, "stronger"),
        (0.4, "reproduced"),
        (0.66, "reproduced"),
        (0.72, "weaker"),
        (0.8, "absent"),
        (0.9, "reversed"),
    ],
)
def test_a_verdict_follows_from_the_numbers(tmp_path, mixture, verdict):
    """tab:mw-conflict: SCOUT 0.617 on shelf-place, mixture 0.383; half of the difference is 0.117. Ours: 0.8."""
    runs = [
        written(
            tmp_path,
            "metaworld-conflict",
            rule,
            100,
            {"push": curve(20, at=AT), "shelf-place": curve(20, final=final, at=AT)},
        )
        for rule, final in (("scout", 0.8), ("mixture", mixture))
    ]
    answer = verdicts.answer(row("metaworld-conflict", "mixture", "final:shelf-place"), blocks_of(runs))
    assert answer.paper_difference == pytest.approx(0.617 - 0.383)
    assert answer.difference.point == pytest.approx(0.8 - mixture)
    assert answer.verdict == verdict


def test_a_row_finds_its_own_condition_only(tmp_path):
    groups = {"all": curve(60, at=AT)}
    runs = [
        written(tmp_path, "multiroom", "scout", 100, groups, preset="paper"),
        written(tmp_path, "multiroom", "scout", 100, groups, ladder="solver"),
        written(tmp_path, "multiroom", "fixed", 100, groups, constants={"level": 3}),
        written(tmp_path, "multiroom", "scout", 100, groups, preset="paper-fast"),
    ]
    blocks = blocks_of(runs)
    assert verdicts.answer(row("multiroom", "scout", "final", preset="paper-fast"), blocks).runs == (runs[3],)
    assert verdicts.answer(row("multiroom", "scout", "final"), blocks).verdict == "not yet run"
    assert verdicts.answer(row("multiroom", "scout", "final", preset="paper"), blocks).runs == (runs[0],)
    assert verdicts.answer(row("multiroom", "scout", "final", ladder="solver"), blocks).runs == (runs[1],)
    assert verdicts.answer(row("multiroom", "fixed", "final"), blocks).verdict == "not yet run"  # level 3 is a sweep's


def test_retention_from_planted_areas(tmp_path):
    """Areas 0.75 (solver), 0.5 (manual), 0.25 (target): R_retain is 2; without a gain there is none."""
    flat = {
        name: {"all": np.full(len(AT), level)} for name, level in (("auto", 0.75), ("manual", 0.5), ("target", 0.25))
    }
    runs = []
    for seed in (100, 101, 102):
        runs += [
            written(tmp_path, "doorkey", "scout", seed, flat["auto"], ladder="solver"),
            written(tmp_path, "doorkey", "scout", seed, flat["manual"]),
            written(tmp_path, "doorkey", "target", seed, flat["target"]),
        ]
    kept = retention(blocks_of(runs), "doorkey", "solver")
    assert kept.ratio == pytest.approx((2, 2, 2))
    answer = verdicts.answer(row("doorkey", "scout", "retained", ladder="solver"), blocks_of(runs))
    assert (answer.verdict, answer.ours.point) == ("reproduced", pytest.approx(2))
    assert retention(blocks_of(runs), "doorkey", "policy") is None
    losing = [written(tmp_path, "doorkey", "target", 100, {"all": np.full(len(AT), 0.9)})]
    answer = verdicts.answer(row("doorkey", "scout", "retained", ladder="solver"), blocks_of([*runs[:2], *losing]))
    assert answer.verdict == "reversed"
    assert "nothing to keep" in answer.note
    level = [written(tmp_path, "doorkey", "target", 100, {"all": np.full(len(AT), 0.48)})]
    answer = verdicts.answer(row("doorkey", "scout", "retained", ladder="solver"), blocks_of([*runs[:2], *level]))
    assert (answer.verdict, answer.seeds) == ("absent", 1)
    assert answer.areas == pytest.approx((0.75, 0.5, 0.48))


def test_level_counts_are_compared_with_each_other(tmp_path):
    """Five, nine and thirteen levels: finals 0.8, 0.95, 0.96; areas by `curve` 3/4, 3/4 and 7/12 of these."""
    runs = [
        written(tmp_path, "doorkey-16", "scout", 100, {"all": curve(r, final=f, at=AT)}, ladder="solver", levels=levels)
        for levels, f, r in ((5, 0.8, 60), (9, 0.95, 60), (13, 0.96, 100))
    ]
    asked = [r for r in verdicts.rows() if (r.setting, r.rule) == ("doorkey-16", "scout")]
    answer = {(r.levels, r.metric): verdicts.answer(r, blocks_of(runs)) for r in asked}
    assert answer[9, "final"].difference.point == pytest.approx(0.15)
    assert answer[9, "auc"].difference.point == pytest.approx(0.15 * 0.75)
    assert answer[13, "auc"].difference.point == pytest.approx(0.96 * 7 / 12 - 0.95 * 0.75)
    assert {key: a.verdict for key, a in answer.items()} == {
        (5, "final"): "no claim",
        (9, "final"): "reproduced",  # +0.10 in the paper
        (9, "auc"): "reproduced",  # not behind
        (13, "final"): "reproduced",  # level
        (13, "auc"): "reproduced",  # behind
    }
    fewer = blocks_of(
        [runs[2], written(tmp_path, "doorkey-16", "scout", 100, {"all": curve(20, at=AT)}, ladder="solver")]
    )
    nine_for_five = replace(answer[9, "auc"].row, levels=13)
    assert verdicts.answer(nine_for_five, fewer).verdict == "reversed"  # 0.56 beside 0.92


@pytest.mark.parametrize(("final", "verdict"), [(0.5, "reproduced"), (0.6, "weaker"), (0.8, "absent"), (1.0, "absent")])
def test_a_rule_that_loses_a_group_is_judged_by_its_own_final(tmp_path, final, verdict):
    """However large SCOUT's lead in area is: with 1.0 from window 100 on, the group is late and not lost."""
    groups = {"table": curve(20, at=AT), "air": curve(100, final=final, at=AT)}
    runs = [
        written(tmp_path, "fetch-conflict", "anneal", 100, groups),
        written(tmp_path, "fetch-conflict", "scout", 100, {name: curve(20, at=AT) for name in groups}),
    ]
    asked = [r for r in verdicts.rows() if (r.setting, r.rule, r.preset) == ("fetch-conflict", "anneal", "")]
    answer = {r.metric: verdicts.answer(r, blocks_of(runs)) for r in asked}
    assert (answer["worst_final"].verdict, answer["worst_final"].difference) == (verdict, None)
    assert answer["worst_auc"].verdict == "reproduced"
    assert not answer["worst_auc"].row.says


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.5, "reproduced"), (0.6, "reproduced"), (0.8, "weaker"), (1.0, "absent")]
)
def test_a_ratio_that_the_paper_prints(tmp_path, share, verdict):
    """DoorKey pacing splits: SCOUT has about twice the worst-group AUC; half of that lead is 1.5 times."""
    flat = np.full(len(AT), 0.8)
    runs = [
        written(tmp_path, "doorkey-16-split", "scout", 100, {"short": flat, "long": flat}),
        written(tmp_path, "doorkey-16-split", "anneal", 100, {"short": flat, "long": flat * share}),
    ]
    (asked,) = [r for r in verdicts.rows() if r.paper_ratio is not None]
    answer = verdicts.answer(asked, blocks_of(runs))
    assert answer.verdict == verdict
    assert f"{1 / share:.2f} times the rule's" in answer.note


def test_seeds_solved_are_shares(tmp_path):
    """tab:sixtask: 6 of 6 beside 3 of 6. Here 3 of 3 beside 1 of 3 (ends at 0.5 and above count): +2/3, median +1."""
    runs = [written(tmp_path, "doorkey", "scout", seed, {"all": curve(20, at=AT)}) for seed in (100, 101, 102)]
    runs += [
        written(tmp_path, "doorkey", "target", seed, {"all": curve(20, final=final, at=AT)})
        for seed, final in ((100, 0.5), (101, 0.49), (102, 0.0))
    ]
    (asked,) = [r for r in verdicts.rows() if (r.setting, r.metric) == ("doorkey", "solved")]
    answer = verdicts.answer(asked, blocks_of(runs))
    assert (answer.ours.point, answer.difference.point) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (answer.paper_difference, answer.verdict) == (0.5, "reproduced")


def test_a_comparison_of_two_learners_says_so(tmp_path):
    """A record that does not say what it ran on beside one that does, seed by seed."""
    groups = {"all": curve(60, at=AT)}
    old = [written(tmp_path, "multiroom", "scout", seed, groups) for seed in (100, 101)]
    new = [written(tmp_path, "multiroom", "random", seed, groups, about=GPU) for seed in (101, 102)]
    asked = row("multiroom", "random", "auc")
    answer = verdicts.answer(asked, blocks_of([*old, *new]))
    assert (answer.mixed, answer.seeds) == (True, 1)
    same = written(tmp_path, "multiroom", "random", 100, groups)
    answer = verdicts.answer(asked, blocks_of([*old, same, new[1]]))
    assert (answer.mixed, answer.seeds) == (False, 1)  # 102 has no partner


def test_the_differences_that_the_paper_prints():
    """Read off its tables once more, by hand: they are not the differences of its medians."""
    printed = {
        ("fetch-conflict", "worst_auc"): {"group-frontier": 0.18, "rfcl": 0.13, "aced": 0.3, "plr": 0.15, "alp": 0.25},
        ("fetch-withingroup", "worst_auc"): {"group-frontier": 0.69, "anneal": 0.20, "mixture": 0.29},
        ("metaworld-pickplace", "auc"): {"target": 0.172},
        ("doorkey", "auc"): {"target": 0.268},
        ("doorkey-limited", "auc"): {"target": 0.268},
        ("metaworld-conflict", "worst_auc"): {
            "group-frontier": -0.1,
            "anneal": 0.138,
            "mixture": 0.016,
            "target": 0.141,
        },
    }
    for (setting, metric), rules in printed.items():
        for rule, difference in rules.items():
            answer = verdicts.answer(row(setting, rule, metric), [])
            assert answer.paper_difference == pytest.approx(difference), (setting, rule)


def test_the_papers_numbers_are_whole():
    """Every row of tab:mw-conflict has its worst final at most the smaller of its two finals (seed means of minima)."""
    for rule in {n.rule for n in paper.numbers() if n.setting == "metaworld-conflict"}:
        finals = [paper.number("metaworld-conflict", rule, f"final:{g}").value for g in ("push", "shelf-place")]
        assert paper.number("metaworld-conflict", rule, "worst_final").value <= min(finals)
    assert all(0 <= n.value <= 2 and n.source for n in paper.numbers())
    keys = [(n.setting, n.rule, n.metric, n.ladder, n.levels) for n in paper.numbers()]
    assert len(set(keys)) == len(keys)


def test_every_claim_that_is_asked_again_is_asked_first():
    """Else the headline would leave it out."""
    asked = verdicts.rows()

    def plain(r):
        return replace(r, setting=paper.PAPER_SETTING.get(r.setting, r.setting), preset="", says="")

    first = [plain(r) for r in asked if not r.again]
    again = [r for r in asked if r.again]
    assert {r.setting for r in again} == {"doorkey-limited", "fetch-conflict", "fetch-withingroup-push"}
    assert all(plain(r) in first for r in again)
    assert len(set(first)) == len(first)


def test_the_meta_world_conflict_is_judged_by_its_worst_group_auc():
    """The paper's primary measure on conflicts, beside the final success."""
    asked = {(r.rule, r.metric) for r in verdicts.rows() if r.setting == "metaworld-conflict"}
    assert asked >= {
        (rule, metric)
        for rule in ("group-frontier", "anneal", "mixture", "target")
        for metric in ("worst_auc", "final:shelf-place")
    }


def test_the_committed_verdicts(committed):
    """What no rewording of the rules may call reproduced; the areas behind a share of gain are those that it is of."""
    answers, blocks = committed
    for a in answers:
        assert a.verdict in (*judging.VERDICTS, "no claim")
        assert bool(a.seeds) == (a.verdict != "not yet run")
        assert not a.seeds or a.claimed == (a.verdict != "no claim")
        if a.areas:
            kept = retention(blocks, a.row.setting, a.row.ladder)
            assert a.areas[1] - a.areas[2] == pytest.approx(kept.gain)
            assert a.ours is None or (a.areas[0] - a.areas[2]) / kept.gain == pytest.approx(a.ours.point)
        if a.difference is not None and a.paper_difference is not None and a.verdict == "reproduced":
            assert a.difference.point * a.paper_difference > 0 or abs(a.difference.point) <= judging.TIE
