"""What others are compared with: SCOUT with its own constants, whatever a sweep puts beside it."""

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.bench.reproduction.verdicts import Row, answer
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.build import report
from scout_rl.report.measure.aggregate import aggregate_tables
from scout_rl.report.measure.comparison import comparison_table, evaluated, scores
from scout_rl.report.measure.conclusions import conclude
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.measure.retention import retention
from scout_rl.report.read.runs import load
from scout_rl.report.show.figures import draw_all
from scout_rl.rules.rule import SCHEDULES
from tests.report.planted import CATALOGUE, config, staircase, write_compact

AT = np.arange(0, 121, 20)
SEEDS = range(100, 106)
OWN = rules.Scout().constants()
SWEPT = {**OWN, "N_stale": 0}
"""Sorts before the rule's own 4."""


def own_constants(setting, rule, windows=120):
    """As a run of that budget would have them."""
    usual = rules.make(rule).constants()
    return usual | {name: SETTINGS[setting].schedule(windows) for name in SCHEDULES if name in usual}


def plant(folder, setting, rule, final, constants=None, seeds=SEEDS, **others):
    """Runs with a flat held-out curve; their folder."""
    constants = own_constants(setting, rule) if constants is None else constants
    for seed in seeds:
        run_config = config(setting=setting, rule=rule, seed=seed, constants=constants, **others)
        name = "-".join(map(str, (setting, rule, constants.get("N_stale"), others.get("ladder", ""), seed)))
        frontier = staircase(120, 10, every=np.full(10, 20 + seed % 3)) if rule == "scout" else None
        write_compact(folder / f"{name}.npz", run_config, {"all": np.full(len(AT), final)}, frontier=frontier)
    return folder


def blocks_in(folder):
    runs = [summarise(load(path, catalogue=CATALOGUE)) for path in sorted(folder.glob("*.npz"))]
    return [evaluated(block) for block in group(runs)]


@pytest.fixture
def swept(tmp_path):
    """As a reviewer found it: the variant is above annealing, SCOUT itself below."""
    folder = tmp_path / "swept"
    plant(folder, "doorkey-limited", "scout", 0.25)
    plant(folder, "doorkey-limited", "scout", 0.75, SWEPT)
    return plant(folder, "doorkey-limited", "anneal", 0.5)


def test_a_sweep_does_not_move_the_reference(swept):
    (block,) = blocks_in(swept)
    block_scores = scores(block)
    assert [s.condition.label for s in block_scores] == ["scout (N_stale 4)", "scout (N_stale 0)", "anneal"]
    sentences = conclude(block, block_scores)
    assert (
        "SCOUT's AUC is lower than that of scout (N_stale 0) (-0.50 [-0.50, -0.50], n = 6); anneal (-0.25"
        in sentences[0]
    )
    assert not any("higher" in sentence for sentence in sentences)
    table = comparison_table(block, block_scores)
    assert table.column("Δ SCOUT − rule [95%]")[0] == "(reference)"
    assert table.column("Δ SCOUT − rule [95%]")[2].startswith("-0.250")
    assert table.column("paper")[0] != "–"
    assert table.column("paper")[1] == "–"  # the paper's number is not of another N_stale
    (drawn,) = [figure for figure in draw_all(block, block_scores) if figure.name == "frontier"]
    assert "under scout (N_stale 4)," in drawn.caption


def test_it_is_the_condition_that_the_verdicts_take(swept):
    (block,) = blocks_in(swept)
    assert scores(block)[0].condition is block.of("scout")
    assert answer(Row("doorkey-limited", "scout", "auc"), [block]).runs == block.of("scout").runs


def test_a_variant_in_its_place_is_named(tmp_path):
    """Alone of its rule, so that nothing in the block tells it apart; the page must."""
    plant(tmp_path / "runs", "doorkey-limited", "scout", 0.75, SWEPT)
    plant(tmp_path / "runs", "doorkey-limited", "anneal", 0.5)
    (block,) = blocks_in(tmp_path / "runs")
    block_scores = scores(block)
    sentences = conclude(block, block_scores)
    assert sentences[0] == (
        "There is no SCOUT with its own constants here: everything is compared with scout (N_stale 0)."
    )
    assert "scout (N_stale 0)'s AUC is higher than that of anneal" in sentences[1]
    assert not any("SCOUT" in sentence for sentence in sentences[1:])
    table = comparison_table(block, block_scores)
    assert table.column("rule")[0] == "scout (N_stale 0)"
    assert "Δ scout (N_stale 0) − rule [95%]" in table.header
    assert conclude(block, block_scores[:1]) == ["scout (N_stale 0) alone: the table describes, nothing is compared."]
    text = report([tmp_path / "runs"], tmp_path / "out", catalogue=CATALOGUE).read_text()
    assert "SCOUT&#x27;s AUC" not in text
    assert "SCOUT − rule" not in text


def test_a_sweep_loses_no_block_of_the_aggregate(swept):
    """One setting has a sweep, the other none; both count for SCOUT against annealing."""
    plant(swept, "multiroom", "scout", 0.75)
    plant(swept, "multiroom", "anneal", 0.5)
    (table,) = aggregate_tables([(block, scores(block)) for block in blocks_in(swept)])
    assert table.rows == [["anneal", "2", "12", "0.50 [0.50, 0.50]", "0.50 [0.50, 0.50]", "0.50 [0.50, 0.50]"]]
    assert "IQM SCOUT [95%]" in table.header


def test_settings_with_a_variant_alone_are_counted_apart(tmp_path):
    finals = {
        "doorkey": (OWN, 0.75),
        "multiroom": (OWN, 0.75),
        "doorkey-split": (SWEPT, 0.25),
        "fetch-air": (SWEPT, 0.25),
    }
    for setting, (constants, final) in finals.items():
        plant(tmp_path, setting, "scout", final, constants)
        plant(tmp_path, setting, "random", 0.5)
    ours, variant = sorted(
        aggregate_tables([(block, scores(block)) for block in blocks_in(tmp_path)]), key=lambda t: t.title
    )
    assert ours.rows[0][:3] == variant.rows[0][:3] == ["random", "2", "12"]
    assert (ours.rows[0][3], variant.rows[0][3]) == ("0.75 [0.75, 0.75]", "0.25 [0.25, 0.25]")
    assert variant.header[3] == "IQM scout (N_stale 0) [95%]"
    assert "those compared with scout (N_stale 0) (2)." in ours.notes[1]


def test_a_sweep_does_not_lose_the_retained_gain(tmp_path):
    plant(tmp_path, "doorkey", "scout", 0.75, ladder="solver")
    for constants, final in ((OWN, 0.5), (SWEPT, 0.9)):
        plant(tmp_path, "doorkey", "scout", final, constants)
    plant(tmp_path, "doorkey", "target", 0.25)
    assert retention(blocks_in(tmp_path), "doorkey", "solver").ratio.point == pytest.approx(2)
