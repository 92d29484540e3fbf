"""Batches: many runs in one compiled call leave the records of single runs, and end the same after any death."""

import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from scout_rl.bench.campaign import batch_engine
from scout_rl.bench.campaign.batch_engine import BatchEngine, plan_batches
from scout_rl.bench.campaign.file import load
from scout_rl.bench.hardware import n_threads
from scout_rl.bench.run import batch as batch_of_runs
from scout_rl.bench.run import checkpoint, repeat
from scout_rl.bench.run.batch import Batch, Member, by_common_window
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.run.store import open_store
from scout_rl.bench.run.train import train
from scout_rl.cli import main
from scout_rl.records import tables as records
from scout_rl.records.made_with import continued_by
from tests.bench.campaign.small_campaigns import Hold, alive, campaign, children, run_folders, until, write_file
from tests.bench.run.run_helpers import everything, tiny

pytestmark = pytest.mark.usefixtures("shared_parts")

LIMITED, COMPARED = "doorkey-limited-small", 3
RUNS = {"scout": {}, "plr": {"rule": "plr", "seed": 42}}
WIDTH = 3


def short(**changes):
    """Episodes of at most 100 steps; checkpoints after windows 2, 4 and 5."""
    return tiny(**{"setting": LIMITED, "windows": 5, "evaluate_every": 5, "checkpoint_every": 2, **changes})


def members(folder, *names):
    return [Member(name, short(**RUNS[name]), folder / name) for name in names or RUNS]


def quiet(sentence):
    """Where nobody reads."""


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Two runs in three lanes; the third is of a run that cannot be opened."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "file").write_text("in the way")
    batch = Batch(WIDTH, say=quiet)
    batch.train([*members(folder), Member("blocked", short(seed=43), folder / "file" / "run")])
    assert list(batch.failed) == ["blocked"]
    assert "cannot be written: Not a directory" in batch.failed["blocked"]
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The first windows of one of them, by `train`."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train(short(), folder, say=quiet, until=COMPARED)
    return folder


# -- the same records as a run alone ------------------------------------------------------------------------------


def test_the_files_and_fields_are_those_of_a_run_alone(together, alone):
    assert sorted(path.name for path in (together / "scout").iterdir()) == sorted(path.name for path in alone.iterdir())
    ours, theirs = read_run(together / "scout"), read_run(alone)
    assert ours.pop("ran_on") == {**theirs.pop("ran_on"), "engine": "batch", "width": WIDTH}
    assert ours == theirs
    for table in ("windows", "events", "metrics", "evaluations", "timing"):
        pair = [records.read_rows(folder / f"{table}.jsonl") for folder in (together / "scout", alone)]
        assert [list(row) for row in pair[0]][: len(pair[1])] == [list(row) for row in pair[1]]
    assert len(records.read_rows(together / "scout" / "windows.jsonl")) == 5
    assert checkpoint.saved_windows(together / "scout" / "checkpoints") == [4, 5]


def test_the_first_windows_are_those_of_a_run_alone(together, alone):
    """Cells, starts and keys come from (seed, window) in both. Sums of floats are taken in another order.

    So the learner's numbers differ by 1e-7 or so. A sampled action differs where its random number is as near to the
    border: about once in a million steps, and these windows have a few hundred.
    """
    windows, metrics, evaluations = (
        [records.read_rows(folder / f"{table}.jsonl")[:COMPARED] for folder in (together / "scout", alone)]
        for table in ("windows", "metrics", "evaluations")
    )
    for ours, theirs in zip(*windows, strict=True):
        np.testing.assert_allclose(ours.pop("signal"), theirs.pop("signal"), atol=1e-5)
        assert ours == theirs  # cells and outcomes
    for ours, theirs in zip(*metrics, strict=True):
        assert ours["environment_steps"] == theirs["environment_steps"]
        np.testing.assert_allclose(list(ours.values()), list(theirs.values()), atol=1e-5)
    assert evaluations[0][0] == evaluations[1][0]  # before any update
    assert len({row["value_loss"] for row in metrics[0]}) == COMPARED  # the learner learned


# -- whatever happens in the middle ---------------------------------------------------------------------------------


def test_stopped_while_its_runs_save_it_ends_the_same(together, tmp_path, monkeypatch):
    """Each stop comes when the first run has saved and the second has not: at windows 4 and 5, the last."""
    whole, said = checkpoint.write, []
    monkeypatch.setattr(batch_of_runs, "SAVING", 1)  # one after the other
    for at, names, continued in ((4, RUNS, None), (4, RUNS, 2), (None, ["plr"], 4)):
        writes = iter(range(1, 100))

        def write(*arguments, at=at, writes=writes, **named):
            if next(writes) == at:
                raise KeyboardInterrupt
            return whole(*arguments, **named)

        monkeypatch.setattr(checkpoint, "write", write)
        batch = Batch(WIDTH, say=said.append)
        said.clear()
        if at is None:
            assert checkpoint.saved_windows(tmp_path / "scout" / "checkpoints") == [4, 5]  # finished, so not trained
            batch.train(members(tmp_path, *names))
        else:
            with pytest.raises(KeyboardInterrupt):
                batch.train(members(tmp_path, *names))
        assert sum(f"from window {continued}" in sentence for sentence in said) == (len(names) if continued else 0)
    for name in RUNS:
        assert everything(tmp_path / name) == everything(together / name)


def test_a_run_that_fails_leaves_the_batch_and_the_others_go_on(together, tmp_path, monkeypatch):
    said = []
    batch = Batch(WIDTH, say=said.append)
    whole = records.JsonLines.append

    def append(table, *rows):
        if table.path.parent.name == "scout" and rows[0]["window"] == 1:
            raise OSError(28, "No space left on device")
        return whole(table, *rows)

    monkeypatch.setattr(records.JsonLines, "append", append)
    batch.train(members(tmp_path), until=3)
    assert batch.failed == {"scout": "OSError: [Errno 28] No space left on device"}
    assert any("Traceback" in sentence for sentence in said)
    cut = [records.read_rows(folder / "plr" / "windows.jsonl")[:3] for folder in (tmp_path, together)]
    assert cut[0] == cut[1]


def test_runs_that_are_no_batch():
    with pytest.raises(ValueError, match="these 2 runs are no batch of width 2"):
        Batch(2).train([Member("a", short(), None), Member("b", short(windows=9), None)])
    with pytest.raises(ValueError, match="'fetch-conflict-small' is simulated on the host"):
        Batch(1).train([Member("a", tiny("fetch"), None)])


# -- the campaign -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds the worker through /proc")
@pytest.mark.slow
def test_a_killed_campaign_continues_and_its_records_can_be_repeated(tmp_path, capsys):
    """`scout repeat` makes a run anew, without an interruption, in another lane and beside copies of itself.

    So equality shows two things: the killed run ended the same, and runs of a batch do not touch each other.
    """
    rules, out = ("scout", "anneal", "random"), tmp_path / "runs"
    file = write_file(tmp_path / "c.toml", rules, [40], windows=6)
    file.write_text(file.read_text().replace("doorkey-split-small", LIMITED))
    threads = "--threads", str(n_threads())  # and the width of `together`: what it has compiled serves here too
    flags = "--engine", "batch", "--width", str(WIDTH), *threads, "--pack", str(tmp_path / "results")
    hold = Hold(tmp_path / "hold")
    hold.at("any", 5)
    process = campaign(file, out, *flags, env=hold.env)
    until(lambda: hold.held() or process.poll() is not None)
    (worker,) = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not alive(worker))
    assert main(["campaign", str(file), "--out", str(out), *flags]) == 0
    assert "3 runs: 3 finished" in capsys.readouterr().out
    (log,) = (out / ".campaign").rglob("*.log")
    assert log.read_text().count("from window 4") == 3  # the checkpoint, not the start
    assert {read_run(folder)["ran_on"]["width"] for folder in run_folders(out).values()} == {WIDTH}
    packed = sorted((tmp_path / "results").rglob("*.npz"))
    assert [path.parent.name for path in packed] == sorted(rules)
    assert main(["repeat", str(packed[0])]) == 0  # the second lane
    assert "equal: all numbers of the first 6 windows" in capsys.readouterr().out


def test_simulators_on_the_host_are_refused_before_anything_is_started(tmp_path, capsys):
    file = write_file(tmp_path / "c.toml", ["scout"], [40])
    text = file.read_text().replace("doorkey-split-small", "fetch-conflict-small")
    file.write_text("\n".join(line for line in text.splitlines() if not line.startswith("learner")))
    assert main(["campaign", str(file), "--engine", "batch", "--out", str(tmp_path / "runs")]) == 2
    assert "needs a simulator of pure functions (MiniGrid); use --engine pool or ray" in squeezed(capsys)
    assert main(["campaign", str(file), "--width", "3", "--out", str(tmp_path / "runs")]) == 2
    assert "--width 3 is of batches: add --engine batch" in squeezed(capsys)
    assert run_folders(tmp_path / "runs") == {}


def test_another_engine_or_width_is_pointed_out():
    """A record that says nothing is of a process for this run alone."""
    alone, batch = ({"versions": {}, "source": "a", "ran_on": on} for on in ({}, {"engine": "batch", "width": 4}))
    said = ["engine process there, batch here", "width of the batch 1 there, 4 here"]
    assert repeat.differing(alone, batch)[-2:] == said
    assert repeat.continued(continued_by(batch, alone, 3), 5) == [
        "windows from 3 on were made with engine process, those before with batch",
        "windows from 3 on were made with width 1, those before with 4",
    ]


def squeezed(capsys):
    return " ".join(capsys.readouterr().err.replace("│", " ").split())


# -- which runs go together -------------------------------------------------------------------------------------------


def test_runs_with_a_common_window_go_together():
    assert by_common_window({"a": [6, 3], "b": [6, 3]}) == [(6, ["a", "b"])]
    assert by_common_window({"a": [6, 3], "b": [3], "c": [3]}) == [(3, ["a", "b", "c"])]  # stopped while they saved
    assert by_common_window({"a": [0], "b": [6, 3], "c": [0]}) == [(0, ["a", "c"]), (6, ["b"])]


def planned(tmp_path, rules=("scout", "anneal", "random"), **changes):
    runs = load(write_file(tmp_path / "c.toml", rules, [40, 41], **changes), str(tmp_path / "runs")).runs
    return list(runs), open_store(str(tmp_path / "runs"))


def stored(store, run, windows, **ran_on):
    """What a run has left: checkpoints, and what made them."""
    store.write(f"{run.name}/run.json", json.dumps({"ran_on": ran_on}).encode())
    for window in windows:
        store.write(f"{run.name}/checkpoints/{window:08d}/manifest.json", b"{}")


def batches(runs, store, limit):
    return [([runs.index(run) for run in batch.runs], batch.width) for batch in plan_batches(runs, store, limit)]


def test_new_runs_fill_batches_in_their_order(tmp_path):
    runs, store = planned(tmp_path)
    assert batches(runs, store, 64) == [([0, 1, 2, 3, 4, 5], 6)]
    assert batches(runs, store, 4) == [([0, 1, 2, 3], 4), ([4, 5], 2)]
    longer, _ = planned(tmp_path, ["scout"], windows=20)
    assert batches([*runs, *longer], store, 64) == [([0, 1, 2, 3, 4, 5], 6), ([6, 7], 2)]


def test_a_stopped_batch_is_put_together_again_with_its_width(tmp_path):
    runs, store = planned(tmp_path)
    for i, windows in enumerate(([4, 2], [4, 2], [2], [2])):  # 0 and 1 have saved, 2 and 3 have not
        stored(store, runs[i], windows, engine="batch", width=4)
    assert batches(runs, store, 4) == [([0, 1, 2, 3], 4), ([4, 5], 2)]
    assert batches(runs[1:], store, 4) == [([0, 1, 2], 4), ([3, 4], 2)]  # one is finished: its lane stays
    assert batches(runs, store, 3) == [([0, 1, 2], 3), ([3], 1), ([4, 5], 2)]  # the user wants smaller ones


def test_stopped_before_the_first_checkpoint(tmp_path):
    runs, store = planned(tmp_path)
    for run in runs[:4]:
        stored(store, run, [], engine="batch", width=6)
    assert batches(runs, store, 64) == [([0, 1, 2, 3, 4, 5], 6)]
    assert batches(runs[:4], store, 64) == [([0, 1, 2, 3], 6)]  # the other two have their first checkpoint


def test_runs_that_were_trained_alone_can_go_on_in_a_batch(tmp_path):
    runs, store = planned(tmp_path)
    for run in runs[:2]:
        stored(store, run, [4, 2], threads=1)
    assert sorted(batches(runs, store, 64)) == [([0, 1], 2), ([2, 3, 4, 5], 4)]


def test_the_engine_says_which_run_of_a_batch_failed(tmp_path, monkeypatch):
    """A run with a line of its own in the log failed for that reason; the others for the worker's, if it died."""
    runs, _ = planned(tmp_path)
    worker = SimpleNamespace(
        start=list, ended=lambda: True, error=lambda: "it died", failed_runs=lambda: {runs[0].name: "refused"}
    )
    monkeypatch.setattr(batch_engine, "WorkerProcess", lambda work: worker)
    engine = BatchEngine(str(tmp_path / "runs"), 64, 1)
    for run in reversed(runs[:3]):
        engine.start(run, 3)
    assert engine.room()
    assert engine.ended() == []  # it begins
    assert [(ended.run, ended.error) for ended in engine.ended()] == [
        (runs[2], "it died"),
        (runs[1], "it died"),
        (runs[0], "refused"),
    ]
    for run in runs[:3]:  # as a campaign starts them again
        engine.start(run, 2)
    engine.ended()
    assert [ended.run for ended in engine.ended()] == [runs[2], runs[1], runs[0]]


def test_runs_that_another_process_trains_leave_the_batch(tmp_path, monkeypatch):
    """They have not failed; the campaign looks at them again."""
    runs, _ = planned(tmp_path)
    started = []

    class Worker(SimpleNamespace):
        def start(self):
            taken = [[runs[0].name], [runs[0].name], []][len(started)]
            started.append(sorted(self.work["runs"].keys() - set(taken)))
            return taken

    gone = {"ended": lambda: True, "error": lambda: None, "failed_runs": dict}
    monkeypatch.setattr(batch_engine, "WorkerProcess", lambda work: Worker(work=work, **gone))
    engine = BatchEngine(str(tmp_path / "runs"), 64, 1)
    for run in runs[:2]:
        engine.start(run, 3)
    assert engine.ended() == [(runs[0], None, 0)]
    assert engine.ended() == [(runs[1], None, 1)]
    engine.start(runs[0], 3)
    assert engine.ended() == [(runs[0], None, 0)]  # a batch of nobody
    engine.start(runs[0], 3)
    assert engine.ended() == []
    assert engine.ended() == [(runs[0], None, 1)]
    assert started == [[runs[1].name], [], [runs[0].name]]


def test_a_worker_that_cannot_be_started(tmp_path, monkeypatch):
    runs, _ = planned(tmp_path)

    def start():
        raise OSError(11, "Resource temporarily unavailable")

    worker = SimpleNamespace(start=start, close=lambda: None)
    monkeypatch.setattr(batch_engine, "WorkerProcess", lambda work: worker)
    engine = BatchEngine(str(tmp_path / "runs"), 64, 1)
    engine.start(runs[0], 3)
    assert [ended.error for ended in engine.ended()] == [
        "its batch cannot be started: Resource temporarily unavailable"
    ]
    assert engine.ended() == []
