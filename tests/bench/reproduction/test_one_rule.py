"""The tables of docs/one-rule.md by hand: scores, the chosen schedule, ratios, words, the pooled test."""

import math
from pathlib import Path

import pytest

from scout_rl.bench.reproduction import one_rule
from scout_rl.bench.reproduction.one_rule import Row, evaluated, geometric_mean, pooled, verdict
from scout_rl.report.measure.statistics import Interval
from scout_rl.report.read.runs import find

ROOT = Path(__file__).parents[3]
SEEDS = range(100, 106)


def row(rule, scores, label="", budget=400, dev=None):
    both = dict(zip(SEEDS, scores, strict=True)) | dict(zip((44, 45, 46), dev or [], strict=False))
    return Row(rule, label or f"`{rule}`", budget, {seed: float(score) for seed, score in both.items()})


def test_the_schedule_is_chosen_on_development_seeds_whatever_the_evaluation_says():
    good_later = row("anneal", [10] * 6, "`anneal` (T_anneal 50)", dev=[300, 300, 300])
    good_first = row("anneal", [390] * 6, "`anneal` (T_anneal 100)", dev=[100, 100, 100])
    kept = evaluated([good_later, good_first, row("ability", [100] * 6)])
    assert [r.label for r in kept] == ["`anneal` (T_anneal 100)", "`ability`"]
    assert set(kept[0].scores) == set(SEEDS)


def test_the_ratio_is_a_geometric_mean_by_seed():
    ours, theirs = row("ability", [100, 200, 100, 200, 100, 200]), row("rfcl", [200, 100, 200, 100, 200, 100])
    ratio = one_rule.ratio_interval(ours.scores, theirs.scores)
    assert ratio.point == pytest.approx(1)
    # The logs are -log 2 and log 2 in turn: sd log(2) * sqrt(6/5), half width 2.5706 * sd / sqrt(6).
    half = 2.5706 * math.log(2) * math.sqrt(6 / 5) / math.sqrt(6)
    assert math.log(ratio.high) == pytest.approx(half)
    assert math.log(ratio.low) == pytest.approx(-half)
    assert geometric_mean(ours.scores) == pytest.approx(math.sqrt(100 * 200))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.5, 0.99, "earlier"), (0.9, 1.14, "level"), (0.9, 1.16, "open"), (1.01, 1.3, "later"), (1.01, 1.1, "level")],
)
def test_the_words_come_from_the_interval(low, high, word):
    assert verdict(Interval(math.sqrt(low * high), low, high)) == word


def test_rivals_are_pooled_over_settings_and_labels_are_not_tested():
    rows = [
        [row("ability", [100] * 6), row("rfcl", [200] * 6), row("group-frontier", [50] * 6)],
        [row("ability", [100] * 6), row("rfcl", [400] * 6), row("anneal", [150] * 6, "x")],
    ]
    ratios = pooled(rows)
    assert ratios["`rfcl`"] == pytest.approx([math.log(0.5)] * 6 + [math.log(0.25)] * 6)
    table = {line[0]: line[1:] for line in one_rule.pooled_table(rows).rows}
    # All 12 differences have one sign: p is 2 / 2**12, times 2 rivals; for six 2 / 2**6 as the larger of the two.
    assert table["`rfcl`"] == ["12", f"{math.exp(-1.5 * math.log(2)):.2f}", "12", f"{4 / 2**12:.2g}"]
    assert table["`anneal` (best length)"][-1] == f"{2 / 2**6:.2g}"
    assert table["`group-frontier`"][-1] == "not tested: it sees the labels"


def test_unsolved_counts_as_the_budget_and_is_counted():
    rows = {"a": [row("ability", [100, 100, 400, 100, 100, 100]), row("rfcl", [400] * 6)]}
    lines = {line[1]: line for line in one_rule.settings_table(rows).rows}
    assert lines["`ability`"][4] == "5 of 6"
    assert lines["`rfcl`"][4] == "0 of 6"
    assert lines["`rfcl`"][-1] == "earlier"


def test_one_thing_at_a_time_is_compared_by_seed_with_the_rule_itself():
    whole = Row("ability", "`ability`", 400, {52: 100.0, 53: 200.0, 54: 300.0})
    part = Row("ability", "`ability` (spread 0)", 400, {52: 200.0, 53: 400.0})
    table = one_rule.parts_table({"a": [whole, part, row("rfcl", [400] * 6)]})
    assert table.rows == [["`ability` (spread 0)", "2.00 (2)"]]
    trials = one_rule.trials_table({"a": [whole, part]})
    assert trials.rows == [["`ability`", f"{(100 * 200 * 300) ** (1 / 3):.0f} (3)"]]


def test_the_page_is_what_the_records_say(tmp_path):
    page = tmp_path / "one-rule.md"
    committed = (ROOT / "docs" / "one-rule.md").read_text()
    page.write_text(committed)
    one_rule.write(ROOT / "results-one-rule", page)
    assert page.read_text() == committed
    assert len(list(find([ROOT / "results-one-rule"]))) > 0
