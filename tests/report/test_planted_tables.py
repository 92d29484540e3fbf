"""Runs with a known answer give the known table, figure data and sentence."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from scout_rl.report.measure.aggregate import aggregate_tables
from scout_rl.report.measure.comparison import (
    comparison_table,
    evaluated,
    mechanism_table,
    scores,
    with_holm,
)
from scout_rl.report.measure.conclusions import conclude
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.measure.tables import Table, as_csv, latex, markdown
from scout_rl.report.read.runs import load
from scout_rl.report.show import figure_data, figures
from tests.report.planted import blocks_of, config, curve, staircase, write_compact, written

AT = np.arange(0, 121, 20)
SEEDS = range(100, 106)


def area(reach, final=1.0, end=120):
    """Of `curve`: a triangle up to ``reach``, then flat."""
    return final * (1 - reach / (2 * end))


@pytest.fixture(scope="module")
def block(tmp_path_factory):
    """Six seeds. SCOUT's hard group reaches 1 at window 40; annealing's ends at 0.2; `random` misses seed 105."""
    folder = tmp_path_factory.mktemp("planted")
    runs = []
    for k, seed in enumerate(SEEDS):
        easy = curve(20, at=AT)
        curves_by_rule = {
            "scout": {"easy": easy, "hard": curve(40 + 20 * (k % 2), at=AT)},
            "anneal": {"easy": easy, "hard": curve(100, final=0.2, at=AT)},
            "random": {"easy": easy, "hard": curve(60, final=0.9, at=AT)},
        }
        for rule, groups in curves_by_rule.items():
            if (rule, seed) == ("random", 105):
                continue
            frontier = staircase(120, 10, every=np.repeat([10, 20], 5)) if rule == "scout" else None
            path = write_compact(folder / rule / f"{seed}.npz", config(rule=rule, seed=seed), groups, frontier=frontier)
            runs.append(summarise(load(path)))
    (whole,) = group(runs)
    return evaluated(whole)


@pytest.fixture(scope="module")
def block_scores(block):
    return with_holm([scores(block)])[0]


def test_the_known_numbers(block_scores):
    scout, anneal, random = block_scores
    assert scout.worst_auc.tolist() == pytest.approx([area(40), area(60)] * 3)
    assert anneal.worst_auc.tolist() == pytest.approx([area(100, 0.2)] * 6)
    assert anneal.auc.tolist() == pytest.approx([(area(20) + area(100, 0.2)) / 2] * 6)
    assert scout.worst_final.tolist() == [1.0] * 6
    assert anneal.worst_final.tolist() == pytest.approx([0.2] * 6)
    assert (anneal.paired.n, anneal.paired.wins, random.paired.n) == (6, 6, 5)
    assert anneal.paired.difference.point == pytest.approx((area(40) + area(60)) / 2 - area(100, 0.2))
    assert anneal.paired.p == pytest.approx(2 / 64)
    assert anneal.holm == pytest.approx(2 * 2 / 64)
    assert scout.paired is None


def test_the_table_as_printed(block, block_scores):
    table = comparison_table(block, block_scores)
    assert table.column("rule") == ["scout", "anneal", "random"]
    assert table.column("n") == ["6", "6", "5 of 6 (no 105)"]
    assert table.column("final hard") == ["1.00 ± 0.00", "0.20 ± 0.00", "0.90 ± 0.00"]
    assert (
        table.column("worst-group AUC (median)")[1]
        == f"{area(100, 0.2):.3f} [{area(100, 0.2):.3f}, {area(100, 0.2):.3f}]"
    )
    assert table.column("solved (≥ 0.5)") == ["6/6", "0/6", "5/5"]
    assert table.column("windows to solve") == ["50 (6/6)", "– (0/6)", "60 (5/5)"]  # median of 40 and 60; never; at 60
    assert table.column("wins") == ["–", "6/6", "5/5"]
    assert "paper" not in table.header  # no paper prints anything about this setting
    assert "Missing seeds: random 105." in table.notes
    assert all(cell for row in table.rows for cell in row)
    training = mechanism_table(block)
    assert training.column("reversals per context") == ["0.00", "–", "–"]
    assert training.column("level 0") == ["50%", "100%", "100%"]
    assert training.column("million steps") == ["0.12"] * 3
    assert training.column("minutes") == ["1.00"] * 3
    assert "bootstrap fraction" not in training.header  # no ladder is from policies


def test_three_forms_of_one_table(block, block_scores):
    table = comparison_table(block, block_scores)
    read = list(csv.reader(io.StringIO(as_csv(table))))
    assert read == [table.header, *table.rows]
    rows = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(table.rows)
    assert {row.count(" | ") for row in rows} == {len(table.header) - 1}
    text = latex(table)
    assert text.count(r"\\") == 1 + len(table.rows)
    assert r"95\%" in text
    assert "Δ" not in text


def test_awkward_text_survives():
    table = Table("50% of a_b & c", ["x|y", "n"], [["a|b", "{1}"]], ["$5"])
    assert "a\\|b" in markdown(table)
    assert r"50\% of a\_b \& c" in latex(table)
    assert r"\{1\}" in latex(table)
    with pytest.raises(ValueError, match="a row has 1 cells, the header 2"):
        Table("t", ["a", "b"], [["1"]])


def test_the_figure_data(block, block_scores):
    curves = {band.label: band for band in figure_data.learning_curves(block, worst=True)}
    assert curves["anneal"].mean[-1] == pytest.approx(0.2)
    assert curves["scout"].mean[1] == pytest.approx((20 / 40 + 20 / 60) / 2)
    assert curves["scout"].deviation[1] == pytest.approx(np.std([1 / 2, 1 / 3] * 3, ddof=1))
    drawn = {figure.name: figure.drawn.axes[0] for figure in figures.draw_all(block, block_scores)}
    seeds, middle, *_, of_random, _ = [line.get_xdata() for line in drawn["worst-auc"].get_lines()]
    assert middle == pytest.approx([(area(40) + area(60)) / 2] * 2)
    assert (len(seeds), len(of_random)) == (6, 5)
    hard = [bar.get_width() for bar in drawn["final"].patches[3:]]
    assert hard == pytest.approx([1, 0.2, 0.9])
    (frontier,) = figure_data.frontier_bands(block.conditions[0], "frontier_mean")
    assert frontier.mean[0] == 4
    assert frontier.mean[-1] == 0
    assert frontier.mean[frontier.x.tolist().index(11)] == 3.5
    (spread,) = figure_data.frontier_bands(block.conditions[0], "dispersion")
    assert spread.mean[spread.x.tolist().index(11)] == 1
    masked = {line.get_label(): line for line in drawn["masking"].get_lines()}
    assert masked["anneal"].get_xdata()[0] > masked["anneal"].get_ydata()[0]
    assert "reversals" not in drawn  # only SCOUT has a frontier
    assert figure_data.frontier_bands(block.conditions[1], "frontier_mean") == []


def test_figures_are_the_same_each_time_and_tell_rules_apart_without_colour(block, block_scores, tmp_path):
    drawn = {figure.name: figure for figure in figures.draw_all(block, block_scores)}
    assert set(drawn) == {"curves", "worst-curves", "worst-auc", "final", "levels", "frontier", "dispersion", "masking"}
    again = {figure.name: figure for figure in figures.draw_all(block, block_scores)}
    assert drawn["curves"].svg == again["curves"].svg
    lines = drawn["curves"].drawn.axes[0].get_lines()
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 3
    hatches = {patch.get_hatch() for patch in drawn["final"].drawn.axes[0].patches}
    assert len(hatches) == 2
    figures.save(drawn["final"], tmp_path)
    assert (tmp_path / "final.png").read_bytes()[:4] == b"\x89PNG"
    inline = figures.inline_svg(drawn["curves"], "p0-")
    assert figures.INK not in inline
    assert "currentColor" in inline
    assert 'id="axes_1"' not in inline


def test_the_sentence(block, block_scores):
    text = " ".join(conclude(block, block_scores))
    assert "SCOUT's worst-group AUC is higher than that of anneal (+0.6" in text
    assert "n = 6" in text
    assert "No sign test survives the Holm-Bonferroni correction" in text
    assert "SCOUT against itself on disjoint halves" in text
    few = [s if s.paired is None else s._replace(paired=s.paired._replace(n=4)) for s in block_scores]
    assert "Nothing may be concluded about anneal (4), random (4)" in " ".join(conclude(block, few))
    unclear = s_with(block_scores[1], low=-0.1)
    assert "No difference can be told from anneal" in " ".join(conclude(block, [block_scores[0], unclear]))
    worse = s_with(block_scores[1], low=-0.3, high=-0.1)
    assert "is lower than that of anneal" in " ".join(conclude(block, [block_scores[0], worse]))
    assert "nothing is compared" in conclude(block, block_scores[:1])[0]
    assert "No plr run" in conclude(replace(block, chosen="plr"), block_scores)[0]


def s_with(score, **bounds):
    return score._replace(paired=score.paired._replace(difference=score.paired.difference._replace(**bounds)))


def test_aggregates_over_settings(tmp_path):
    runs = []
    for setting, (ours, theirs) in {"doorkey": (0.75, 0.25), "multiroom": (0.5, 0.5)}.items():
        for seed in (100, 101, 102):
            runs += [written(tmp_path, setting, "scout", seed, {"all": np.full(len(AT), ours)})]
            runs += [written(tmp_path, setting, "random", seed, {"all": np.full(len(AT), theirs)})]
    (table,) = aggregate_tables([(b, scores(b)) for b in blocks_of(runs)])
    (cells,) = table.rows
    # SCOUT always better in one setting, always equal in the other: (1 + 0.5) / 2
    assert cells == ["random", "2", "6", "0.62 [0.62, 0.62]", "0.38 [0.38, 0.38]", "0.75 [0.75, 0.75]"]
