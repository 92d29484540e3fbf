"""The training run: same seed same records, killed anywhere and continued the same, nothing half-written."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scout_rl import Curriculum
from scout_rl.bench import families
from scout_rl.bench.run import checkpoint, repeat
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.run.train import train
from scout_rl.files.lock import LOCK, is_held, lock_folder
from scout_rl.records import compact
from scout_rl.records import tables as records
from scout_rl.report.measure.metrics import gradient_steps
from tests.bench.campaign.small_campaigns import PATIENCE, until
from tests.bench.run.run_helpers import child, everything, tiny

pytestmark = pytest.mark.usefixtures("shared_parts")


@pytest.fixture
def straight(tiny_run):
    return tiny_run


def first_cells(folder):
    row = records.read_rows(folder / "windows.jsonl")[0]
    return row["context"], row["level"]


def test_cells_are_drawn_as_in_anyones_loop(straight):
    config = tiny()
    cells = Curriculum(config.make_rule(), 40, config.levels, seed=config.seed).assign(config.episodes)
    assert first_cells(straight) == (cells.context.tolist(), cells.level.tolist())
    assert read_run(straight)["cells_from"] == "curriculum"


def test_old_records_keep_their_stream(straight, tmp_path):
    """Before, cells came from PCG64(seed) itself. Such a run says nothing of it, and is continued and repeated so."""
    config = tiny()
    train(config, tmp_path / "run", say=lambda sentence: None, until=3, seed_stream=True)
    curriculum = Curriculum(config.make_rule(), 40, config.levels, seed=config.seed)
    curriculum.generator = np.random.Generator(np.random.PCG64(config.seed))
    cells = curriculum.assign(config.episodes)
    assert first_cells(tmp_path / "run") == (cells.context.tolist(), cells.level.tolist())
    assert first_cells(tmp_path / "run") != first_cells(straight)
    assert "cells_from" not in read_run(tmp_path / "run")
    assert repeat.repeat(repeat.read(tmp_path / "run", 3)) is None


def test_a_run_leaves_its_records(straight):
    about = read_run(straight)
    assert about["config"]["constants"]["n_min"] == 15  # whole, whatever later defaults are
    bank = families.load_bank(families_setting("doorkey-small"))
    assert about["bank_sha256"] == bank.sha256
    assert about["groups"] == bank.labels(["all"])
    evaluations = records.read_rows(straight / "evaluations.jsonl")
    assert [row["window"] for row in evaluations] == [0, 4, 8]
    assert all(len(row["outcomes"]) == 40 for row in evaluations)
    assert evaluations[0]["success"] == np.mean(evaluations[0]["outcomes"])
    metrics = records.read_rows(straight / "metrics.jsonl")
    assert [row["window"] for row in metrics] == list(range(8))
    steps = [row["environment_steps"] for row in metrics]
    assert steps == sorted(steps)
    assert steps[-1] > 0
    curriculum = records.read_records(straight)
    assert [len(row["context"]) for row in curriculum.windows] == [4] * 8
    assert curriculum.frontier.shape == (8, 40)
    assert [path.name for path in sorted((straight / "checkpoints").iterdir())] == ["00000006", "00000008"]


def families_setting(key):
    from scout_rl.bench.settings.settings import setting

    return setting(key)


def test_the_learner_learned(straight):
    """Work happened: parameters moved, and every window counted its losses."""
    arrays = {}
    for name in ("00000006", "00000008"):
        with np.load(straight / "checkpoints" / name / "learner.npz") as file:
            arrays[name] = {k: file[k] for k in file.files}
    changed = [k for k in arrays["00000006"] if not np.array_equal(arrays["00000006"][k], arrays["00000008"][k])]
    assert any("hidden_1" in k for k in changed)


def test_the_reports_updates_are_the_optimisers_steps(straight):
    learner = read_run(straight)["config"]["learner"]
    steps = np.array([row["environment_steps"] for row in records.read_rows(straight / "metrics.jsonl")])
    with np.load(straight / "checkpoints" / "00000008" / "learner.npz") as file:
        (count,) = [int(file[name]) for name in file.files if name.endswith(".count")]
    assert gradient_steps(learner, steps)[-1] == count
    assert count > len(steps)  # some windows are more than one minibatch


def test_same_seed_same_records_bit_for_bit(straight, tmp_path):
    train(tiny(), tmp_path / "again", say=lambda sentence: None)
    assert everything(tmp_path / "again") == everything(straight)
    train(tiny(seed=42), tmp_path / "other", say=lambda sentence: None)
    assert everything(tmp_path / "other") != everything(straight)


def test_a_finished_run_is_left_alone(straight, tmp_path):
    shutil.copytree(straight, tmp_path / "run")
    before = everything(tmp_path / "run")
    train(tiny(), tmp_path / "run", say=lambda sentence: None)
    assert everything(tmp_path / "run") == before


def test_a_second_process_is_refused_before_it_writes(straight, tmp_path):
    """The lock is the operating system's, so that of a killed process is gone."""
    pytest.importorskip("fcntl", reason="there are no file locks here")
    folder = tmp_path / "run"
    shutil.copytree(straight, folder)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="run is being trained by another process: wait until that one ends"):
        train(tiny(), folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    holder.kill()
    holder.wait()
    train(tiny(), folder, say=lambda sentence: None)


HOLDER = """
import sys, time
from pathlib import Path
from scout_rl.files.lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_two_processes_started_at_once_leave_one_run(straight, tmp_path):
    pytest.importorskip("fcntl", reason="there are no file locks here")
    hold = tmp_path / "run.hold"
    hold.touch()  # the one that comes first does not end before the other has seen it
    both = [child(tmp_path / "run", "hold") for _ in range(2)]
    until(lambda: any(process.poll() is not None for process in both))
    (refused,) = [process for process in both if process.poll() is not None]
    assert refused.returncode == 1
    hold.unlink()
    assert sorted(process.wait(PATIENCE) for process in both) == [0, 1]
    assert everything(tmp_path / "run") == everything(straight)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(tmp_path, monkeypatch, code):
    fcntl = pytest.importorskip("fcntl", reason="there are no file locks here")

    def flock(file, how):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with lock_folder(tmp_path / "run"), lock_folder(tmp_path / "run"):
        assert not is_held(tmp_path / "run" / LOCK)


DEATHS = [("append", 14), ("rename", 2)]
MORE = [("append", n) for n in (1, 5, 9, 20, 27, 33, 34)] + [("write", n) for n in (1, 2, 3, 6)] + [
    ("rename", 1), ("rename", 3), ("clean", 1), ("play", 1), ("play", 3), ("play", 5), ("play", 8),
]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "count"), [*DEATHS, *(pytest.param(*death, marks=pytest.mark.slow) for death in MORE)]
)
def test_killed_and_continued_it_ends_the_same(straight, tmp_path, where, count):
    first = child(tmp_path / "run", where, count)
    assert first.wait(300) == -signal.SIGKILL
    if where == "play":  # in a process of its own again; the others spare its start
        second = child(tmp_path / "run")
        said, _ = second.communicate(timeout=PATIENCE)
        assert second.returncode == 0
    else:
        sentences = []
        train(tiny(), tmp_path / "run", say=sentences.append)
        said = " ".join(sentences)
    assert everything(tmp_path / "run") == everything(straight)
    saved = list_checkpoints_at_death(where, count)
    assert ("continuing" in said) == saved
    assert ("was stopped before its first checkpoint: it begins again" in said) == (not saved)


def list_checkpoints_at_death(where, count):
    """Whether a checkpoint was whole when it died (the first one comes after window 3)."""
    return {"append": count > 13, "write": count > 3, "rename": count > 1, "clean": True, "play": count > 3}[where]


@pytest.mark.slow
def test_killed_at_twenty_random_moments(straight, tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "run"
    for _ in range(20):
        running = child(folder)
        time.sleep(rng.uniform(2.0, 14.0))
        running.kill()
        running.wait()
    assert child(folder).wait(300) == 0
    assert everything(folder) == everything(straight)


def test_a_damaged_checkpoint_falls_back_and_says_so(straight, tmp_path):
    shutil.copytree(straight, tmp_path / "run")
    newest = tmp_path / "run" / "checkpoints" / "00000008" / "learner.npz"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    said = []
    train(tiny(), tmp_path / "run", say=said.append)
    assert "00000008 is damaged (learner.npz does not have its hash); falling back" in said[0]
    assert "from window 6" in said[1]
    assert everything(tmp_path / "run") == everything(straight)


@pytest.mark.parametrize("damage", ["manifest", "missing", "all"])
def test_other_damage(straight, tmp_path, damage):
    shutil.copytree(straight, tmp_path / "run")
    checkpoints = sorted((tmp_path / "run" / "checkpoints").iterdir())
    if damage == "manifest":
        (checkpoints[-1] / "manifest.json").write_text('{"schema": 1, "win')
    elif damage == "missing":
        (checkpoints[-1] / "curriculum.npz").unlink()
    else:
        for path in checkpoints:
            (path / "learner.npz").write_bytes(b"")
    said = []
    newest = checkpoint.newest(tmp_path / "run" / "checkpoints", tiny().identity, said.append)
    assert (newest is None) == (damage == "all")
    assert len(said) == (2 if damage == "all" else 1)


def test_a_full_disk_is_a_sentence_and_loses_nothing(straight, tmp_path):
    """A file-size limit stands for the full disk: the write fails half-way, as it does there."""
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tests.bench.run import test_train
from scout_rl.commands.train import run
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))
from scout_rl.bench.run import checkpoint
whole = checkpoint.write
def unlimited(*given, **named):
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    hashes = whole(*given, **named)
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))
    return hashes
checkpoint.write = unlimited
try:
    run(test_train.tiny(), Path({str(tmp_path / "run")!r}))
except ValueError as refusal:
    print("REFUSED", refusal)
"""
    (tmp_path / "run").mkdir()
    shutil.copy(straight / "run.json", tmp_path / "run" / "run.json")  # larger than the limit
    shutil.copy(straight / "config.json", tmp_path / "run" / "config.json")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "REFUSED" in out.stdout, out.stdout + out.stderr
    assert "cannot be written (File too large); what was saved is whole, and the same command continues it" in (
        out.stdout.replace("\n", " ")
    )
    train(tiny(), tmp_path / "run", say=lambda sentence: None)
    assert everything(tmp_path / "run") == everything(straight)


# -- refused before any training time is spent -------------------------------------------------------------------------


def test_another_config_in_the_same_folder(straight):
    before = everything(straight)
    for change, name in (
        ({"seed": 9}, "seed"),
        ({"windows": 9}, "windows"),
        ({"constants": {"beta": 0.5}}, "constants"),
    ):
        with pytest.raises(ValueError, match=f"holds another run: {name} is .* there and .* here"):
            train(tiny(**change), straight)
    assert everything(straight) == before


def test_saving_more_often_is_the_same_run(straight, tmp_path):
    shutil.copytree(straight, tmp_path / "run")
    train(tiny(checkpoint_every=1), tmp_path / "run", say=lambda sentence: None)


def test_a_checkpoint_of_another_config(straight, tmp_path):
    with pytest.raises(ValueError, match="is of another config"):
        checkpoint.newest(straight / "checkpoints", tiny(seed=9).identity, print)


def test_a_bank_that_is_not_the_committed_one(monkeypatch, tmp_path):
    monkeypatch.setattr(families, "pinned_hashes", lambda: {"doorkey-small": "0" * 64})
    with pytest.raises(ValueError, match="content hash"):
        train(tiny(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        train(tiny(), tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"setting": "doorkie"}, "no setting 'doorkie'; the settings are"),
        ({"rule": "scoot"}, "there is no rule 'scoot'"),
        ({"rule": "fixed", "constants": {"level": 5}}, "level 5 is not on a ladder of 5 levels"),
        ({"constants": {"tau": 0.0}}, "temperature tau"),
        ({"constants": {"tua": 1.0}}, "rule 'scout' has no constant 'tua'; it has lambda_h"),
        ({"learner": {"gama": 1.0}}, "learner 'ppo' has no constant 'gama'; it has n_actions"),
        ({"levels": 1}, "n_levels is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"windows": -1}, "windows is -1"),
        ({"episodes": -1}, "episodes is -1, but cannot be negative"),
    ],
)
def test_a_config_that_cannot_run(change, message):
    with pytest.raises(ValueError, match=message):
        tiny(**change)


def test_schedules_follow_the_budget():
    assert tiny(rule="anneal", windows=100).constants == {"T_anneal": 50}
    assert tiny(rule="anneal", windows=100, constants={"T_anneal": 7}).constants == {"T_anneal": 7}
    assert tiny(rule="reverse", windows=100).constants["T"] == 50


def test_the_config_is_its_dict():
    config = tiny(rule="beta")
    again = RunConfig(**json.loads(json.dumps(config.as_dict())))
    assert again == config
    assert again.identity == config.identity
    assert dataclasses.replace(config, checkpoint_every=99).identity == config.identity
    assert dataclasses.replace(config, seed=99).identity != config.identity


# -- what a run is turned into -------------------------------------------------------------------------------------


def test_compact_records_keep_the_numbers(straight, tmp_path):
    compact.pack(straight, tmp_path / "results" / "41.npz")
    run = compact.unpack(tmp_path / "results" / "41.npz")
    whole = records.read_records(straight)
    assert run.about == read_run(straight)
    assert run.context.tolist() == [row["context"] for row in whole.windows]
    assert run.level.tolist() == [row["level"] for row in whole.windows]
    assert run.success.astype(int).tolist() == [row["success"] for row in whole.windows]
    assert np.array_equal(run.frontier, whole.frontier)
    evaluations = records.read_rows(straight / "evaluations.jsonl")
    assert run.outcomes.astype(int).tolist() == [row["outcomes"] for row in evaluations]
    assert run.groups["all"].tolist() == [row["groups"]["all"] for row in evaluations]
    assert run.evaluated_at.tolist() == [0, 4, 8]
    assert run.environment_steps[-1] == evaluations[-1]["environment_steps"]
    assert sorted(tmp_path.rglob("*.npz")) == [tmp_path / "results" / "41.npz"]


def test_an_unfinished_run_is_not_packed(straight, tmp_path):
    shutil.copytree(straight, tmp_path / "run")
    records.JsonLines(tmp_path / "run" / "windows.jsonl").cut(5)
    with pytest.raises(ValueError, match="has 5 of 8 windows: only a finished run is packed"):
        compact.pack(tmp_path / "run", tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()


def test_tensorboard_gets_the_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from scout_rl.commands.train import run

    assert run(tiny(windows=2, evaluate_every=1), tmp_path / "run", "tensorboard") == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert {"held-out/all", "held-out/worst-group", "frontier/all", "train/success", "learner/entropy"} <= set(
        events.Tags()["tensors"]
    )


def test_a_sink_that_is_not_installed():
    from scout_rl.bench.run.sinks import open_sink

    with pytest.raises(ValueError, match="--track trackio needs the package 'trackio': pip install trackio"):
        open_sink("trackio", None, "x", {})
