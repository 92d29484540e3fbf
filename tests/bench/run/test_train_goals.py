"""The training run on host simulators: same seed same records, killed anywhere and continued the same."""

import shutil
import signal

import jax
import numpy as np
import pytest

from scout_rl.bench import families
from scout_rl.bench.run import checkpoint, trained
from scout_rl.bench.run.train import train
from scout_rl.records import tables as records
from scout_rl.report.measure.metrics import gradient_steps
from tests.bench.run.run_helpers import child, everything, tiny

KINDS = ["fetch", pytest.param("pointmaze", marks=pytest.mark.slow)]


def quiet(sentence):
    pass


@pytest.fixture(scope="session", params=KINDS)
def straight(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("goals") / request.param
    train(tiny(request.param), folder, say=quiet)
    return folder


def test_a_run_leaves_its_records(straight):
    config = tiny(straight.name)
    rows = records.read_rows(straight / "metrics.jsonl")
    horizon = {"fetch": 50, "pointmaze": 600}[straight.name]
    assert [row["environment_steps"] for row in rows] == [4 * horizon * (i + 1) for i in range(config.windows)]
    assert all(np.isfinite(value) for row in rows for value in row.values())
    assert rows[-1]["critic_loss"] > 0
    evaluations = records.read_rows(straight / "evaluations.jsonl")
    assert evaluations[-1]["window"] == config.windows
    assert len(evaluations[-1]["outcomes"]) == 8  # every held-out context, once


def test_the_reports_updates_are_the_optimisers_steps(straight):
    steps = np.array([row["environment_steps"] for row in records.read_rows(straight / "metrics.jsonl")])
    with np.load(straight / "checkpoints" / "00000007" / "learner.npz") as file:
        counts = {int(file[name]) for name in file.files if name.endswith(".count") and "moments" in name}
    assert counts == {gradient_steps(tiny(straight.name).learner, steps)[-1]}


def test_same_seed_same_records_bit_for_bit(straight, tmp_path):
    train(tiny(straight.name), tmp_path / "again", say=quiet)
    assert everything(tmp_path / "again") == everything(straight)


def test_the_replay_lies_in_segments_that_are_written_once(straight):
    """Ten episodes fit; 28 were played: what two checkpoints (24 and 28 episodes) need is there, and no more."""
    segments = sorted(path.stem for path in (straight / "checkpoints" / "shared").iterdir())
    assert segments == ["replay-000000008-000000016", "replay-000000016-000000024", "replay-000000024-000000028"]
    kept = checkpoint.at(straight / "checkpoints", 7, tiny(straight.name).identity)
    assert list(kept.shared) == segments[1:]


DEATHS = [("drop", 2)]
MORE = [
    ("append", 18), ("write", 4), ("play", 6),
    ("append", 3), ("append", 11), ("append", 23), ("write", 1), ("write", 2), ("write", 6), ("write", 9),
    ("rename", 1), ("rename", 3), ("clean", 1), ("drop", 1), ("drop", 3), ("play", 1), ("play", 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "count"), [*DEATHS, *(pytest.param(*death, marks=pytest.mark.slow) for death in MORE)]
)
def test_killed_and_continued_it_ends_the_same(straight, tmp_path, where, count):
    first = child(tmp_path / "run", where, count, straight.name)
    assert first.wait(300) == -signal.SIGKILL
    if where == "play":  # in a process of its own again; the others spare its start
        second = child(tmp_path / "run", kind=straight.name)
        second.communicate(timeout=300)
        assert second.returncode == 0
    else:
        train(tiny(straight.name), tmp_path / "run", say=quiet)
    assert everything(tmp_path / "run") == everything(straight)


def test_a_damaged_segment_is_noticed(straight, tmp_path):
    """The newest checkpoint loses its newest segment; the one before it never named it."""
    shutil.copytree(straight, tmp_path / "run")
    newest = max((tmp_path / "run" / "checkpoints" / "shared").iterdir())
    newest.write_bytes(newest.read_bytes()[:-100] + bytes(100))
    said = []
    train(tiny(straight.name), tmp_path / "run", say=said.append)
    assert any("is damaged (replay-" in sentence and "falling back" in sentence for sentence in said)
    assert everything(tmp_path / "run") == everything(straight)


def test_a_trained_run_is_read_back(straight):
    """The policy of the last checkpoint does on the held-out contexts what the run recorded."""
    run = trained.load(straight, say=quiet)
    assert run.evaluate(run.state).outcomes.tolist() == [bool(o) for o in run.recorded["outcomes"]]
    family = families.family(run.setting.family)
    simulator = family.batch_simulator(run.setting)
    observations = simulator.observe(simulator.reset_to(family.target_starts(run.bank.held_out.contexts)))
    act, sample = run.act(), run.sample()
    keys = [jax.random.key(i) for i in range(2)]
    assert np.array_equal(*(act(observations, key) for key in keys))  # deterministic
    drawn = [sample(observations, key) for key in keys]
    assert not np.array_equal(*drawn)
    assert drawn[0].shape == (8, simulator.n_actions)
    assert np.abs(drawn).max() <= 1
