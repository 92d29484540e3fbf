"""Every kind of record gives the same run; what is no record is refused in one sentence."""

import json
import shutil

import numpy as np
import pytest

from scout_rl.records.compact import pack
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import find, load, read_labels
from scout_rl.report.read.statuses import WORDS, window_statuses
from tests.report.planted import config, curve, load_labelled, played_folder, staircase, write_compact


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run folder of 100 windows, its curve rising to 1 at window 80."""
    return played_folder(tmp_path_factory.mktemp("runs") / "run", 100, reach=80)


def test_a_folder_and_its_compact_record_are_the_same_run(folder, tmp_path):
    pack(folder, tmp_path / "run.npz")
    one, other = load(folder), load(tmp_path / "run.npz")
    for name in ("window", "context", "level", "success"):
        assert np.array_equal(getattr(one.rollouts, name), getattr(other.rollouts, name)), name
    for name in ("window", "context", "kind", "from_level"):
        assert np.array_equal(getattr(one.moves, name), getattr(other.moves, name)), name
    assert np.array_equal(one.frontier, other.frontier)
    assert one.held_out.tolist() == other.held_out.tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1])
    assert one.about.seconds == other.about.seconds == 50
    assert one.about.environment_steps == other.about.environment_steps == 10_000
    a, b = summarise(one), summarise(other)
    assert a.reversals == b.reversals
    assert a.auc((0, 100)) == b.auc((0, 100)) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="are the same run"):
        group([a, b])


def test_a_log_dir_is_the_same_but_for_what_it_does_not_know(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "log")
    for name in ("run.json", "evaluations.jsonl", "metrics.jsonl", "timing.jsonl"):
        (tmp_path / "log" / name).unlink()
    ours, theirs = load(folder), load(tmp_path / "log")
    assert np.array_equal(ours.frontier, theirs.frontier)
    assert np.array_equal(ours.moves.window, theirs.moves.window)
    assert theirs.about.kind == "log_dir"
    assert len(summarise(theirs).at) < 2
    assert theirs.about.finished


def test_the_replay_gives_the_rules_own_words(folder):
    """Replayed from a record's outcomes alone, frontiers fit and every recorded move is where the words say."""
    run = load(folder)
    status = window_statuses(run)
    moved = np.isin(status, [WORDS.index(w) for w in ("advanced", "retreated", "probed")])
    assert sorted(zip(*np.nonzero(moved), strict=True)) == sorted(zip(run.moves.window, run.moves.context, strict=True))
    assert (status[0] == WORDS.index("gathering")).all()


def test_a_replay_of_other_constants_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "changed")
    about = json.loads((tmp_path / "changed/run.json").read_text())
    about["config"]["constants"]["n_min"] = 3
    (tmp_path / "changed/run.json").write_text(json.dumps(about))
    assert window_statuses(load(tmp_path / "changed")) is None


def test_find_does_not_look_inside_runs(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "a/run")
    (tmp_path / "a/run/checkpoints").mkdir()
    np.savez(tmp_path / "a/run/checkpoints/x.npz", weights=np.zeros(2))
    np.savez(tmp_path / "a/other.npz", something=np.zeros(2))  # not ours: passed over
    compact = write_compact(tmp_path / "b/100.npz", config(), {"all": curve(60, at=range(0, 121, 20))})
    assert find([tmp_path]) == [tmp_path / "a/run", compact]
    assert find([compact, tmp_path / "b"]) == [compact]


def test_what_is_no_record_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match=r"empty holds no records: no run folder, no log_dir and no compact record in it"
    ):
        find([tmp_path / "empty"])
    with pytest.raises(ValueError, match="nowhere holds no records"):
        find([tmp_path / "nowhere"])
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(ValueError, match=r"bad\.npz is no compact record"):
        load(tmp_path / "bad.npz")
    with pytest.raises(ValueError, match=r"bad\.npz is damaged"):
        find([tmp_path])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/run.json").write_text('{"schema": 1, "config"')
    with pytest.raises(ValueError, match=r"broken.run\.json is damaged: Expecting"):
        load(tmp_path / "broken")
    (tmp_path / "labels.json").write_text('["a", "b"]')
    with pytest.raises(ValueError, match="must hold a list of 3 group names, one per context, and holds a list of 2"):
        read_labels(tmp_path / "labels.json", 3)


def test_runs_that_differ_in_anything_but_the_seed_are_never_averaged(tmp_path):
    groups = {"all": curve(60, at=range(0, 121, 20))}
    variants = [
        {},
        {"seed": 101},
        {"ladder": "solver"},
        {"levels": 9},
        {"preset": "paper"},
        {"algorithm": "sac"},
        {"windows": 100},
        {"learner": {"gamma": 0.9}},
        {"constants": {"n_min": 5}},
        {"constants": {"n_min": 7}},
        {"rule": "anneal"},
        {"checkpoint_every": 7, "seed": 102},  # says nothing about the run
        {"preset": "", "algorithm": None, "seed": 103},  # a field of later versions, left empty
    ]
    runs = [
        summarise(
            load(
                write_compact(
                    tmp_path / f"{i}.npz",
                    config(**v),
                    groups if v.get("windows") != 100 else {"all": groups["all"][:6]},
                )
            )
        )
        for i, v in enumerate(variants)
    ]
    runs.append(summarise(load(write_compact(tmp_path / "bank.npz", config(), groups, bank="ef" * 32))))
    blocks = group(runs)
    sizes = {(b.label, c.label): len(c.runs) for b in blocks for c in b.conditions}
    assert len(sizes) == len(variants) - 3 + 1
    assert sorted(sizes.values()) == [1] * (len(sizes) - 1) + [4]
    assert len({label for _, label in sizes}) >= 4  # scout, two with other constants, anneal
    assert len({label for label, _ in sizes}) == 8  # usual, ladder, levels, preset, algorithm, windows, learner, bank
    with pytest.raises(ValueError, match=r"0\.npz and .*again\.npz are the same run"):
        group([runs[0], summarise(load(write_compact(tmp_path / "again.npz", config(), groups)))])


def test_a_policy_ladders_own_source_does_not_part_seeds(tmp_path):
    groups = {"all": curve(60, at=range(0, 121, 20))}
    runs = []
    for seed, source in (
        (100, "results/doorkey/scout/100.npz"),
        (101, "results/doorkey/scout/101.npz"),
        (102, "elsewhere"),
    ):
        fallback = f"results/doorkey/scout/{seed}"
        run_config = config(seed=seed, ladder="policy", ladder_from=source, ladder_fallback=fallback)
        runs.append(summarise(load(write_compact(tmp_path / f"{seed}.npz", run_config, groups))))
    assert sorted(len(c.runs) for b in group(runs) for c in b.conditions) == [1, 2]


def test_a_label_says_a_presets_name_and_not_its_constants(tmp_path):
    groups = {"all": curve(60, at=range(0, 121, 20))}
    configs = [
        config(learner={"gamma": 0.98}),
        config(learner={"gamma": 0.99}, preset="paper"),
        config(learner={"gamma": 0.99, "batch": 64}, preset="paper"),
        config(learner={"gamma": 0.98}, ladder="policy", ladder_from="runs/a/0"),
    ]
    runs = [summarise(load(write_compact(tmp_path / f"{i}.npz", t, groups))) for i, t in enumerate(configs)]
    names = [block.label.removeprefix(block.setting) for block in group(runs)]
    assert names == ["", " (paper)", " (paper, batch 64)", " (policy ladder)"]


def test_group_labels_are_the_records_own(folder, tmp_path):
    groups = {"near": np.zeros(7), "far": np.ones(7)}
    path = write_compact(tmp_path / "x.npz", config(), groups, labelled=True)
    run = load(path)
    assert (run.groups, run.context_group.tolist(), run.about.n_contexts) == (("near", "far"), [0] * 5 + [1] * 5, 10)
    assert load(write_compact(tmp_path / "y.npz", config(), groups)).context_group is None
    assert load(folder).context_group is None


def test_a_planted_frontier_summarised(tmp_path):
    """Contexts 0-4 step every 10 windows, 5-9 every 20."""
    every = np.repeat([10, 20], 5)
    frontier = staircase(120, 10, every=every)
    path = write_compact(tmp_path / "x.npz", config(), {"all": curve(60, at=range(0, 121, 20))}, frontier=frontier)
    summary = summarise(load_labelled(path, (("fast", "slow"), np.repeat([0, 1], 5))))
    rollouts = load(path).rollouts
    assert summary.level_share.tolist() == pytest.approx(np.bincount(rollouts.level, minlength=5) / (120 * 4))
    # three windows per column: the fast ones leave level 4 after window 10, in the fourth column
    assert summary.rollouts["fast"].shape == (40, 5)
    assert not summary.rollouts["fast"][:3, :4].any()
    assert (summary.rollouts["fast"] + summary.rollouts["slow"]).sum(axis=1).tolist() == [12] * 40
    assert summary.reversals == 0
    assert summary.at_target == 1
    assert summary.frontier_mean["fast"][10] == 3
    assert summary.frontier_mean["slow"][10] == 4
    assert not summary.dispersion["fast"].any()
    whole = summarise(load(path))
    assert whole.dispersion["all"][10] == 1  # half at 3, half at 4
    # 0.9 is first reached at window 60 (curve 1.0), and holds
    assert (summary.solved_window, summary.solved_steps, summary.solved_seconds) == (60, 60_000, pytest.approx(30.0))
