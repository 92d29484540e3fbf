"""Anyone's loops that report held-out evaluations are compared: by name, seed by seed."""

import csv
import json

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.cli import main
from scout_rl.report.measure.conditions import group, with_names
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import find, load

GROUPS = ["near"] * 10 + ["far"] * 10


def loop(folder, speed, *, windows=40, rule=None, groups=GROUPS, n_contexts=6, **options):
    """A learner whose held-out success rises by ``speed`` of the contexts per window, near ones first."""
    curriculum = Curriculum(rule or rules.Scout(), n_contexts, 5, log_dir=folder, **options)
    for window in range(windows + 1):
        if window % 10 == 0:
            curriculum.evaluation(np.arange(20) < speed * window, groups)
        if window < windows:
            cells = curriculum.assign(8)
            curriculum.report(cells, cells.level > 0)


def table(out, name="rep-success.csv"):
    with (out / "tables" / name).open(newline="", encoding="utf-8") as file:
        return {row["rule"]: row for row in csv.DictReader(file)}


def test_two_folders_with_the_default_seed_are_two_conditions(tmp_path):
    loop(tmp_path / "rep/ppo", 1.0)
    loop(tmp_path / "rep/sac", 0.5)
    assert main(["report", str(tmp_path / "rep"), "-o", str(tmp_path / "out")]) == 0
    rows = table(tmp_path / "out")
    assert list(rows) == ["ppo", "sac"]
    assert [rows[name]["n"] for name in rows] == ["1", "1"]
    assert [rows[name]["final"] for name in rows] == ["1.00", "1.00"]
    assert (rows["ppo"]["final near"], rows["sac"]["worst final"]) == ("1.00", "1.00")
    # all near ones at window 10, all far ones at 20 against 20 and 40: areas 35/40 and 25/40, worst 25/40 and 10/40
    assert rows["sac"]["Δ ppo − rule [95%]"] == "+0.375"
    assert "paper" not in next(iter(rows.values()))
    page = (tmp_path / "out/index.html").read_text()
    assert "nothing is compared" not in page
    assert "<svg" in page


def test_seeds_of_one_name_are_averaged_and_paired(tmp_path):
    """Numbered folders for one, names and seeds for the other; six seeds allow a sentence."""
    for seed in range(6):
        loop(tmp_path / f"rep/ppo/{seed}", 1.0 + seed / 100)
        loop(tmp_path / f"rep/sac-{seed}", 0.5, name="sac", seed=seed)
    runs = with_names([summarise(load(path)) for path in find([tmp_path / "rep"])])
    (block,) = group(runs)
    assert {c.label: c.seeds for c in block.conditions} == {"ppo": list(range(6)), "sac": list(range(6))}
    assert main(["report", str(tmp_path / "rep"), "-o", str(tmp_path / "out")]) == 0
    rows = table(tmp_path / "out")
    assert (rows["sac"]["n"], rows["sac"]["wins"]) == ("6", "6/6")
    assert "ppo&#x27;s worst-group AUC is higher than that of sac" in (tmp_path / "out/index.html").read_text()


def test_rules_under_one_name_are_told_apart(tmp_path):
    loop(tmp_path / "a", 1.0, name="mine")
    loop(tmp_path / "b", 0.5, name="mine", rule=rules.Target())
    (block,) = group(with_names([summarise(load(path)) for path in find([tmp_path])]))
    assert [c.label for c in block.conditions] == ["mine: scout", "mine: target"]


def test_seeds_alone_need_no_name(tmp_path):
    for seed in (0, 1):
        loop(tmp_path / f"{seed}", 1.0)
    (block,) = group(with_names([summarise(load(path)) for path in find([tmp_path])]))
    assert {c.label: c.seeds for c in block.conditions} == {"scout": [0, 1]}


@pytest.mark.parametrize("end", ["-{}", "_{}", "-s{}", "_seed{}"])
def test_seeds_at_the_end_of_folders_are_seeds(tmp_path, end):
    for seed in (0, 1):
        loop(tmp_path / f"ppo{end.format(seed)}", 1.0, seed=seed)
        loop(tmp_path / f"sac{end.format(seed)}", 1.0, seed=seed, rule=rules.Target())
    (block,) = group(with_names([summarise(load(path)) for path in find([tmp_path])]))
    assert {c.label: c.seeds for c in block.conditions} == {"ppo": [0, 1], "sac": [0, 1]}


def test_numbers_that_are_no_seeds_stay_in_the_name(tmp_path):
    """Two variants with the default seed, one run alone, and one beside a folder of its stem."""
    names = ("rate-1", "rate-2", "other-0", "ppo", "ppo-0")
    for name in names:
        loop(tmp_path / name, 1.0)
    (block,) = group(with_names([summarise(load(path)) for path in find([tmp_path])]))
    assert {c.label: c.seeds for c in block.conditions} == {name: [0] for name in names}


def test_the_same_name_and_seed_twice_is_refused(tmp_path, capsys):
    loop(tmp_path / "a", 1.0, name="mine")
    loop(tmp_path / "b", 1.0, name="mine")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "have the same name and seed: give each a seed, or a folder that is a number" in capsys.readouterr().err


def test_other_held_out_contexts_are_another_comparison(tmp_path):
    loop(tmp_path / "a", 1.0)
    loop(tmp_path / "b", 1.0, groups=None)
    blocks = group(with_names([summarise(load(path)) for path in find([tmp_path])]))
    assert [b.label for b in blocks] == [
        "a (held out: 20 contexts of near, far)",
        "b (held out: 20 contexts of all)",
    ]


def test_other_sizes_are_another_comparison(tmp_path):
    """Two of a kind under their folder's name, one alone under its own."""
    loop(tmp_path / "rep/ppo", 1.0)
    loop(tmp_path / "rep/sac", 0.5)
    loop(tmp_path / "rep/large/3", 0.5, n_contexts=60)
    blocks = group(with_names([summarise(load(path)) for path in find([tmp_path / "rep"])]))
    assert [b.label for b in blocks] == ["large (60 contexts)", "rep (6 contexts)"]


def test_a_section_has_the_name_of_its_runs(tmp_path):
    """Given by name, by the folder of one run, of its seeds, or of several conditions; never `log_dir`."""
    loop(tmp_path / "one", 1.0)
    loop(tmp_path / "named/0", 1.0, name="my ppo")
    for seed in (0, 1):
        loop(tmp_path / f"seeds/{seed}", 1.0)
    names = {"one": "one", "named": "my ppo", "seeds": "seeds", "seeds/0": "seeds", "": tmp_path.name}
    for folder, label in names.items():
        (block,) = group(with_names([summarise(load(path)) for path in find([tmp_path / folder])]))
        assert block.label == label
    assert main(["report", str(tmp_path / "one"), "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out/index.html").read_text()
    assert "<h2>one</h2>" in page
    assert "log_dir" not in page.split("<script")[0]
    assert "1 run, 1 comparison." in page


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.reverse(), "its evaluations are not in order"),
        (lambda rows: rows[-1].update(window=41), "or of windows that are not there"),
        (lambda rows: rows[-1].update(success=0.5), "has success 0.5, and the mean of its outcomes is 1"),
        (lambda rows: rows[-1]["outcomes"].pop(), "its outcomes are not one 0 or 1 for every held-out context"),
    ],
)
def test_faked_evaluations_are_refused(tmp_path, capsys, change, sentence):
    loop(tmp_path / "a", 1.0)
    path = tmp_path / "a/evaluations.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["report", str(tmp_path / "a"), "-o", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert f"{path} is damaged: " in message
    assert sentence in message
