"""What the others are compared with: chosen, or `ability`, else SCOUT, else the first."""

import csv

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.bench.reproduction import pairs
from scout_rl.cli import main
from scout_rl.report.measure.aggregate import aggregate_tables
from scout_rl.report.measure.comparison import comparison_table, evaluated, scores
from scout_rl.report.measure.conclusions import conclude
from scout_rl.report.measure.conditions import PAPERS, group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import load
from scout_rl.report.show.figures import draw_all
from tests.report.planted import CATALOGUE, blocks_of, written
from tests.report.test_reference import SEEDS, plant

AT = np.arange(0, 121, 20)
FINALS = {"ability": 0.9, "scout": 0.75, "random": 0.5, "anneal": 0.25}


def planted(folder, *keys, setting="doorkey-limited"):
    """Runs of these rules; their summaries."""
    for key in keys:
        plant(folder, setting, key, FINALS[key])
    return [summarise(load(path, catalogue=CATALOGUE)) for path in sorted(folder.glob("*.npz"))]


@pytest.mark.parametrize(
    ("keys", "chosen", "reference"),
    [
        (("scout", "ability", "random"), "", "ability"),
        (("scout", "random", "anneal"), "", "scout"),
        (("random", "anneal"), "", "anneal"),
        (("scout", "ability", "random"), "scout", "scout"),
        (("scout", "ability", "random"), "random", "random"),
        (("scout", "random"), "ability", None),
    ],
)
def test_which_it_is(tmp_path, keys, chosen, reference):
    (block,) = map(evaluated, group(planted(tmp_path, *keys), chosen))
    block_scores = scores(block)
    if reference is None:
        assert block.reference is None
        assert conclude(block, block_scores) == [
            "No ability run to compare with: the table describes, nothing is concluded."
        ]
        assert "Δ ability − rule [95%]" in comparison_table(block, block_scores).header
        return
    assert block.conditions[0] is block.reference
    assert block.reference.rule == reference
    name = "SCOUT" if reference == "scout" else reference
    table = comparison_table(block, block_scores)
    differences = dict(zip(table.column("rule"), table.column(f"Δ {name} − rule [95%]"), strict=True))
    assert differences.pop(reference) == "(reference)"
    for other, cell in differences.items():
        assert float(cell.split()[0]) == pytest.approx(FINALS[reference] - FINALS[other], abs=0.001)
    assert any(sentence.startswith(f"{name}'s AUC is ") for sentence in conclude(block, block_scores))


def test_a_reference_without_a_frontier_hides_no_frontier(tmp_path):
    (block,) = map(evaluated, group(planted(tmp_path, "scout", "random"), "random"))
    (drawn,) = [figure for figure in draw_all(block, scores(block)) if figure.name == "frontier"]
    assert "under scout," in drawn.caption


def test_a_variant_of_the_chosen_rule_is_named(tmp_path):
    plant(tmp_path, "doorkey-limited", "ability", 0.5, {**rules.Ability().constants(), "focus": 5.0})
    (block,) = map(evaluated, group(planted(tmp_path, "scout"), "ability"))
    assert conclude(block, scores(block))[0] == (
        "There is no ability with its own constants here: everything is compared with ability (focus 5.0)."
    )


def test_settings_are_aggregated_by_their_reference(tmp_path):
    """Two settings have both rules, two only SCOUT: unchosen they make two tables, and SCOUT chosen makes one."""
    runs = []
    for setting, keys in {
        "doorkey": ("ability", "scout", "random"),
        "multiroom": ("ability", "scout", "random"),
        "doorkey-split": ("scout", "random"),
        "fetch-air": ("scout", "random"),
    }.items():
        for key in keys:
            constants = rules.make(key).constants()
            curve = {"all": np.full(len(AT), FINALS[key])}
            runs += [written(tmp_path, setting, key, seed, curve, constants=constants) for seed in SEEDS[:3]]
    tables = aggregate_tables([(block, scores(block)) for block in blocks_of(runs)])
    assert sorted(table.title for table in tables) == [
        "Over all settings that have both",
        "Over all settings that have both: ability",
    ]
    (ability,) = [table for table in tables if table.title.endswith("ability")]
    assert [row[:2] for row in ability.rows] == [["random", "2"], ["scout", "2"]]
    assert "IQM ability [95%]" in ability.header
    (whole,) = aggregate_tables([(block, scores(block)) for block in map(evaluated, group(runs, "scout"))])
    assert [row[:2] for row in whole.rows] == [["ability", "2"], ["random", "4"]]


def test_the_papers_pages_compare_with_scout(tmp_path):
    (comparison,) = pairs.comparisons(planted(tmp_path, "ability", "scout", "random"))
    assert comparison.rows.chosen == PAPERS
    assert comparison.rows.reference.rule == "scout"
    assert [c.rule for c in comparison.rows.conditions] == ["scout", "ability", "random"]


def test_the_command(tmp_path, capsys):
    planted(tmp_path / "runs", "scout", "ability", "random")
    for flags, name in (([], "ability"), (["--reference", "random"], "random")):
        assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out"), *flags]) == 0
        with (tmp_path / "out/tables/doorkey-limited-success.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert rows[0]["rule"] == name
        assert rows[0][f"Δ {name} − rule [95%]"] == "(reference)"
        assert f"{name}&#x27;s AUC is " in (tmp_path / "out/index.html").read_text()
    capsys.readouterr()
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "none"), "--reference", "plr"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "no run has the rule 'plr' to compare with; the runs have ability, random, scout" in message
    assert not (tmp_path / "none").exists()
