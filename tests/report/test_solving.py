"""Planted runs with a known answer: what it takes to solve, what ladders were bootstrapped, how long seeds take."""

import numpy as np
import pytest

from scout_rl.bench.reproduction.durations import describe_machine, durations_table
from scout_rl.report.build import report
from scout_rl.report.measure.comparison import bootstrap_fraction, evaluated, mechanism_table
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import gradient_steps, summarise
from scout_rl.report.measure.retention import retention_table
from scout_rl.report.measure.solving import solving_table
from scout_rl.report.read.runs import load
from tests.report.planted import as_run_folder, config, play, steadily, write_compact

AT = np.arange(0, 121, 20)
SAC = {"updates": 10, "warmup": 5000}
PPO = {"epochs": 4, "minibatch": 300}
CPU = {"backend": "cpu", "device": "cpu", "processor": "Abacus 3", "cores": 2, "threads": 1}
EARLY = [0, 0.5, 0.95, 0.85, 0.8, 0.9, 1.0]  # solved at 40
LATE = [0, 0.95, 0.7, 0.95, 0.95, 0.85, 0.95]  # falls below 0.8 once, solved at 60
SPIKE = [0, 0.5, 0.89, 0.85, 0.85, 0.95, 0.95]  # at 0.9 only where no two evaluations follow
NEVER = [0.0] * 7


def written(path, seed, hard, **others):
    """One seed: the hard group as given, the easy one solved from window 20 on."""
    about = {name: others.pop(name) for name in ("ladder_about", "ran_on", "seconds") if name in others}
    groups = {"easy": np.array([0.0] + [1.0] * 6), "hard": np.array(hard)}
    run_config = config(seed=seed, **others)
    about = {"ladder" if name == "ladder_about" else name: value for name, value in about.items()}
    return summarise(load(write_compact(path / f"{len(list(path.iterdir()))}.npz", run_config, groups, **about)))


def only(runs):
    (block,) = group(runs)
    return evaluated(block)


def test_what_it_takes_to_solve(tmp_path):
    """1000 steps and 0.5 s a window; gradient steps from the fifth window on, 10 a window."""
    runs = [written(tmp_path, 100 + i, curve, learner=SAC) for i, curve in enumerate((EARLY, LATE, SPIKE, NEVER))]
    assert [run.solved_window for run in runs] == [40, 60, None, None]
    assert [run.solved_steps for run in runs] == [40_000, 60_000, None, None]
    assert [run.solved_updates for run in runs] == [(40 - 4) * 10, (60 - 4) * 10, None, None]
    assert [run.solved_seconds for run in runs] == [pytest.approx(20), pytest.approx(30), None, None]
    table = solving_table(only(runs))
    assert dict(zip(table.header, table.rows[0], strict=True)) == {
        "rule": "scout",
        "n": "4",
        "got there": "2",
        "did not (seeds)": "102, 103",
        "windows": "50 [40, 60]",
        "updates": "460 [360, 560]",
        "million steps": "0.05 [0.04, 0.06]",
        "minutes": "0.4 [0.3, 0.5]",
    }


def test_nobody_solves_it_and_everybody_does(tmp_path):
    (nobody,) = solving_table(only([written(tmp_path, 100, NEVER), written(tmp_path, 101, SPIKE)])).rows
    assert nobody == ["scout", "2", "0", "100, 101", *["–"] * 4]
    (tmp_path / "one").mkdir()
    (one,) = solving_table(only([written(tmp_path / "one", 100, EARLY)])).rows
    assert one == ["scout", "1", "1", "none", "40", "–", "0.04", "0.3"]  # no constants, no updates; one seed, no range


def test_gradient_steps_of_both_kinds_of_learner():
    steps = np.array([250, 300, 1000, 1000, 1601])  # windows of 250, 50, 700, 0 and 601 steps
    assert gradient_steps(PPO, steps).tolist() == [4, 8, 20, 24, 36]  # 1, 1, 3, 1 and 3 minibatches, four epochs
    assert gradient_steps({"updates": 7, "warmup": 1000}, steps).tolist() == [0, 0, 7, 14, 21]
    assert len(gradient_steps({}, steps)) == 0


# -- ladders from policies ----------------------------------------------------------------------------------------


def test_bootstrap_fractions(tmp_path):
    """0.25 and 0.5 over two seeds, beside R_self; runs with a hand-built ladder have none."""
    runs = []
    for seed, fraction in ((100, 0.25), (101, 0.5)):
        ladder_about = {"bootstrap_fraction": fraction, "sha256": "0" * 64}
        policy = {"setting": "doorkey", "ladder": "policy", "ladder_from": f"runs/target/{seed}"}
        runs += [
            written(tmp_path, seed, [0.75] * 7, ladder_about=ladder_about, **policy),
            written(tmp_path, seed, [0.5] * 7, setting="doorkey"),
            written(tmp_path, seed, [0.25] * 7, setting="doorkey", rule="target"),
        ]
    assert [run.about.bootstrap_fraction for run in runs] == [0.25, None, None, 0.5, None, None]
    assert bootstrap_fraction(runs) == "0.38 (n = 2)"
    blocks = [evaluated(block) for block in group(runs)]
    by_ladder = {block.fields["ladder"]: mechanism_table(block) for block in blocks}
    assert by_ladder["policy"].column("bootstrap fraction") == ["0.38 (n = 2)"]
    assert "bootstrap fraction" not in by_ladder["manual"].header
    (row,) = retention_table(blocks).rows
    assert (row[1], row[-1]) == ("R_self", "0.38 (n = 2)")


def test_a_run_folder_tells_its_bootstrap_fraction(tmp_path):
    run_config = config(windows=40, ladder="policy", ladder_from="x")
    folder = play(tmp_path / "run", steadily(lambda context: 1.0), windows=40)
    as_run_folder(folder, run_config, {"all": np.zeros(3)})
    assert load(folder).about.bootstrap_fraction is None
    (folder / "ladder.json").write_text('{"bootstrap_fraction": 0.125}')
    assert load(folder).about.bootstrap_fraction == 0.125


# -- how long -----------------------------------------------------------------------------------------------------


def test_how_long_one_seed_takes(tmp_path):
    """120 windows. Seeds of one kind of machine are averaged, other kinds have rows and sums of their own."""
    runs = [
        written(tmp_path, 100, EARLY, seconds=60.0, ran_on=CPU),
        written(tmp_path, 101, EARLY, seconds=180.0, ran_on=CPU),
        written(tmp_path, 100, EARLY, seconds=240.0, ran_on=CPU, rule="target"),
        written(tmp_path, 102, EARLY, seconds=30.0, ran_on={**CPU, "backend": "gpu", "device": "Loom"}),
        written(tmp_path, 103, EARLY, seconds=12.0),
        written(tmp_path, 100, EARLY, seconds=6.0, setting="doorkey", ladder="solver", ran_on=CPU),
    ]
    table = durations_table([evaluated(block) for block in group(runs)])
    assert table.header == ["setting", "condition", "runs", "windows", "minutes per seed", "seconds per window", "on"]
    assert table.rows == [
        ["doorkey", "scout (solver ladder)", "1", "120", "0.1", "0.05", "A"],
        ["doorkey", "**1 condition**", "–", "–", "**0.1**", "–", "A"],
        ["planted", "scout", "2", "120", "2.0", "1.00", "A"],
        ["planted", "target", "1", "120", "4.0", "2.00", "A"],
        ["planted", "**2 conditions**", "–", "–", "**6.0**", "–", "A"],
        ["planted", "scout", "1", "120", "0.5", "0.25", "B"],
        ["planted", "**1 condition**", "–", "–", "**0.5**", "–", "B"],
        ["planted", "scout", "1", "120", "0.2", "0.10", "C"],
        ["planted", "**1 condition**", "–", "–", "**0.2**", "–", "C"],
    ]
    (note,) = table.notes
    assert "A: Abacus 3, 2 cores, 1 thread, learner on CPU; unknown machine, python 3.12.0." in note
    assert "B: Abacus 3, 2 cores, 1 thread, learner on Loom; unknown machine, python 3.12.0." in note
    assert "C: unknown machine, python 3.12.0; processor, cores, number of threads and backend unknown." in note
    assert len({describe_machine(run) for run in runs}) == 3


def test_the_tables_lie_beside_the_page(tmp_path):
    (tmp_path / "runs").mkdir()
    for seed in (100, 101):
        written(tmp_path / "runs", seed, EARLY, learner=PPO)
    page = report([tmp_path / "runs"], tmp_path / "out")
    table = (tmp_path / "out/tables/planted-solving.csv").read_text().splitlines()
    assert table[1].split(",")[:6] == ["scout", "2", "2", "none", '"40 [40', ' 40]"']
    assert "what it takes to solve" in page.read_text()
