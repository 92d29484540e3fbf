"""Every block has a title and files of its own; a seed in a source's name parts no runs, nothing else joins them."""

import numpy as np
import pytest

from scout_rl.report.build import report
from scout_rl.report.measure.conditions import changed, group
from scout_rl.report.measure.names import LONGEST, distinct_labels, file_names
from tests.report.planted import blocks_of, config, write_compact, written

AT = np.arange(0, 121, 20)
FLAT = {"all": np.full(len(AT), 0.5)}


def from_policies(folder, seed, source, fallback=""):
    run_config = {"ladder": "policy", "ladder_from": source, "ladder_fallback": fallback}
    return written(folder, "doorkey-16", "scout", seed, FLAT, **run_config)


@pytest.mark.parametrize(
    "source",
    [
        "runs/doorkey-16/target/{}",
        "runs/doorkey-16/target/{}/",
        "runs/doorkey-16/target/{}.npz",
        "runs/doorkey-16/target/{}-policy5",
        "runs/doorkey-16/target/{}-solver5-N_stale1",
        "seed{}",
    ],
)
@pytest.mark.parametrize("seeds", [(1, 2), (5, 6), (100, 101)])
def test_a_seed_in_a_sources_name_does_not_part_seeds(tmp_path, source, seeds):
    ((block,),) = [group(from_policies(tmp_path, seed, source.format(seed), source.format(seed)) for seed in seeds)]
    (condition,) = block.conditions
    assert condition.seeds == list(seeds)
    assert block.label == "doorkey-16 (policy ladder)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, "runs/doorkey-1/target/1"), (2, "runs/doorkey-2/target/2")),  # another setting's runs
        ((1, "runs/target/1"), (2, "runs/target/1")),  # another seed's run
        ((1, "runs/target/10"), (2, "runs/target/20")),
    ],
)
def test_a_seed_elsewhere_joins_nothing(tmp_path, one, other):
    assert len(group([from_policies(tmp_path, *one), from_policies(tmp_path, *other)])) == 2


def test_blocks_that_differ_in_a_long_value_have_titles_and_files_of_their_own(tmp_path):
    for letter, value in (("a", 0.25), ("b", 0.75)):
        for seed in (100, 101):
            run_config = config(
                "doorkey", seed=seed, ladder="policy", ladder_from=f"out/campaign-{letter}/target/{seed}"
            )
            groups = {"all": np.full(len(AT), value)}
            write_compact(tmp_path / "runs" / letter / f"{seed}.npz", run_config, groups)
    text = report([tmp_path / "runs"], tmp_path / "out").read_text()
    for letter, final in (("a", "0.25"), ("b", "0.75")):
        name = f"doorkey-policy-ladder-ladder-from-out-campaign-{letter}-target-seed"
        assert f"| {final} ± 0.00 |" in (tmp_path / f"out/tables/{name}-success.md").read_text()
        assert (tmp_path / f"out/figures/{name}/curves.svg").exists()
        assert f"doorkey (policy ladder, ladder_from out/campaign-{letter}/target/{{seed}})</h2>" in text


def test_a_source_is_named_only_where_nothing_else_tells_blocks_apart(tmp_path):
    run_config = {"ladder": "policy", "learner": {"gamma": 0.9}}
    runs = [
        from_policies(tmp_path, 100, "runs/a/target/100"),
        written(tmp_path, "doorkey-16", "scout", 100, FLAT, ladder_from="runs/b/target/100", **run_config),
    ]
    assert [b.label for b in blocks_of(runs)] == ["doorkey-16 (policy ladder)", "doorkey-16 (policy ladder, gamma 0.9)"]


def test_signs_and_long_titles_keep_their_files(tmp_path):
    assert file_names(["x (gain -1.0)", "x (gain 1.0)", "x (gain 1.0-2)", "y"]) == [
        "x-gain-1.0",
        "x-gain-1.0-2",
        "x-gain-1.0-2-2",
        "y",
    ]
    long = file_names(["z" * 300 + "a", "z" * 300 + "b", "★"])
    assert long == ["z" * LONGEST, "z" * LONGEST + "-2", "unnamed"]
    for gain in (-1.5, 1.5):
        run_config = config("doorkey", learner={"gain": gain})
        write_compact(tmp_path / f"runs/{gain}.npz", run_config, {"all": np.full(len(AT), (gain + 1.5) / 3)})
    report([tmp_path / "runs"], tmp_path / "out")
    finals = [(tmp_path / f"out/tables/doorkey-gain-1.5{n}-success.csv").read_text() for n in ("", "-2")]
    assert [text.splitlines()[1].split(",")[2] for text in finals] == ["0.00", "1.00"]


def test_conditions_that_differ_far_behind_the_point_can_be_told_apart(tmp_path):
    runs = [
        written(tmp_path, "doorkey", "own-rule", 100, FLAT, constants={"share": share})
        for share in (0.1234567890123, 0.1234567890124)
    ]
    (block,) = blocks_of(runs)
    assert len({condition.label for condition in block.conditions}) == 2


def test_equal_titles_get_a_hash():
    one, other, third = distinct_labels(["a", "a", "b"], ["x", "y", "z"])
    assert (one[:3], other[:3], third) == ("a #", "a #", "b")
    assert one != other


def test_the_fractions_of_a_ladder_are_no_change_of_a_rule():
    """`reverse` on nine levels has them in its config; on five it has none."""
    constants = {"T": 40, "progress": [0.0, 0.45, 0.9]}
    assert changed("reverse", constants, 40) == {}
    assert changed("reverse", constants, 80) == {"T": 40}
