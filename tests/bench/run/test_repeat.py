"""`scout repeat`: an honest record comes out again, and the first false number is found and named."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scout_rl.bench.hardware import ran_on
from scout_rl.bench.run import repeat
from scout_rl.bench.run import trace as run_trace
from scout_rl.bench.run.config import identity
from scout_rl.bench.run.folder import read_run, versions
from scout_rl.bench.run.train import train
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.cli import main
from scout_rl.records import compact
from tests.bench.campaign.small_campaigns import PATIENCE, alive, children, until
from tests.bench.run.run_helpers import tiny

pytestmark = pytest.mark.usefixtures("shared_parts")

ROOT = Path(__file__).parents[3]
RESULTS = sorted((ROOT / "results").rglob("*.npz"))
EVALUATION_0, WINDOW_0 = (0, True), (1, False)
FAMILIES = sorted({setting.family for setting in SETTINGS.values()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight windows of an annealed run: its level falls from 4 to 0 in the first four."""
    folder = tmp_path_factory.mktemp("stored") / "run"
    train(tiny(rule="anneal"), folder, say=lambda sentence: None)
    return folder


@pytest.fixture(scope="module")
def scouted(tiny_run):
    """The same with a frontier, as a run folder and as a compact record."""
    compact.pack(tiny_run, tiny_run.with_suffix(".npz"))
    return tiny_run


def changed(path, to, about=None, **arrays):
    """A copy of a compact record, with arrays and parts of its config replaced."""
    with np.load(path) as file:
        whole = {name: file[name] for name in file.files}
    note = json.loads(whole["about.json"].tobytes())
    note["run"] = {**note["run"], **(about or {})}
    whole = {**whole, **arrays, "about.json": np.frombuffer(json.dumps(note).encode(), np.uint8)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **whole)
    to.write_bytes(buffer.getvalue())
    return to


def again(path, capsys, *flags):
    """`scout repeat`: its exit code, and what it printed."""
    code = main(["repeat", str(path), *flags])
    return code, " ".join(capsys.readouterr().out.split())


# -- the whole way ------------------------------------------------------------------------------------------------


def test_an_honest_record_is_repeated(scouted, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code, said = again(scouted.with_suffix(".npz"), capsys, "--windows", "6")
    assert (code, said.split(". ")[-1]) == (0, "equal: all numbers of the first 6 windows")
    assert "Versions, source and machine are as they were" in said
    assert not list(tmp_path.glob(f"{repeat.PREFIX}*"))


def test_a_run_folder_with_its_budget_and_its_learners_numbers(folder, capsys, monkeypatch):
    """Three of eight windows: the schedule is that of eight, and no evaluation comes early."""
    seen = []

    def differing(stored_about, here):
        seen.append(here)
        return ["something"]

    monkeypatch.setattr(repeat, "differing", differing)
    code, said = again(folder, capsys, "--windows", "3")
    assert (code, "Not as it was: something." in said) == (0, True)
    stored = read_run(folder)
    assert identity(seen[0]["config"]) == identity(stored["config"])
    assert seen[0]["ran_on"] == stored["ran_on"]
    rows = repeat.read(folder, 3).rows
    assert sorted(rows) == [EVALUATION_0, WINDOW_0, (2, False), (3, False)]
    assert [set(rows[w + 1, False]["level"]) for w in range(3)] == [{4}, {3}, {2}]  # a budget of three would end at 0
    assert rows[WINDOW_0]["the learner's entropy"] > 0


def test_a_false_cell_is_named(scouted, capsys, tmp_path):
    record = scouted.with_suffix(".npz")
    level = compact.unpack(record).level.copy()
    was = int(level[3, 2])
    level[3, 2] -= 1
    code, said = again(changed(record, tmp_path / "false.npz", level=level), capsys)
    assert code == 1
    assert said.endswith(f"different: window 3: level of rollout 2 is {was - 1} in the record and {was} now")


@pytest.mark.slow
def test_another_seed_is_another_run(scouted, capsys, tmp_path):
    config = read_run(scouted)["config"]
    other = changed(scouted.with_suffix(".npz"), tmp_path / "x.npz", {"config": {**config, "seed": config["seed"] + 1}})
    code, said = again(other, capsys, "--windows", "2")
    assert code == 1
    assert "different: the evaluation after 0 windows: outcome of held-out context" in said


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_it_leaves_nothing_behind(scouted, tmp_path, sent, code):
    words = [sys.executable, "-m", "scout_rl.cli", "repeat", str(scouted)]
    process = subprocess.Popen(
        words,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    until(lambda: children(process.pid) or process.poll() is not None)
    workers = children(process.pid)
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)  # it can neither be done nor see its pipe close: it has to be killed
    assert list(tmp_path.glob(f"{repeat.PREFIX}*"))
    process.send_signal(sent)
    assert process.wait(PATIENCE) == code
    until(lambda: not any(map(alive, workers)))
    assert not list(tmp_path.glob(f"{repeat.PREFIX}*"))


# -- comparing ----------------------------------------------------------------------------------------------------


def test_folder_and_record_tell_the_same(scouted):
    record = run_trace.record_rows(compact.unpack(scouted.with_suffix(".npz")), 8)
    whole = run_trace.folder_rows(scouted, 8)
    assert sorted(record) == sorted(whole)
    assert len(record) == 8 + 3
    assert run_trace.first_difference(record, whole, 8) is None
    assert set(whole[WINDOW_0]) > set(record[WINDOW_0]) > {"context", "level", "success", "frontier", "moves"}


@pytest.mark.parametrize(
    ("place", "name", "sentence"),
    [
        ((4, False), "context", "window 3: context of rollout 0 is 99 in the record and"),
        ((6, False), "success", "window 5: success of rollout 0 is 99 in the record and"),
        ((8, False), "frontier", "window 7: frontier of context 0 is 99 in the record and 4 now"),
        ((3, False), "moves", "window 2: moves are [[7, 'advance']] in the record and none now"),
        ((5, False), "environment steps", "window 4: environment steps is 99 in the record and"),
        ((7, False), "the learner's kl", "window 6: the learner's kl is 99 in the record and"),
        ((4, True), "outcome", "the evaluation after 4 windows: outcome of held-out context 0 is 99 in the record and"),
        ((4, True), "success", "4 windows: success is 99 in the record and"),
        (
            (8, True),
            "success of group all",
            "8 windows: success of group all is 99 in the record",
        ),
    ],
)
def test_every_false_number_is_found(scouted, place, name, sentence):
    stored, now = run_trace.folder_rows(scouted, 8), run_trace.folder_rows(scouted, 8)
    right = stored[place][name]
    false = [[7, "advance"]] if name == "moves" else [99, *right[1:]] if isinstance(right, list) else 99
    stored[place][name] = false
    difference = run_trace.first_difference(stored, now, 8)
    assert sentence in difference
    assert run_trace.first_difference(stored, now, place[0] - 1) is None  # it had not come to that yet


def test_another_ladder_is_named_before_anything_else(scouted):
    ladders = [{(0, False): {"hash of its starts": name}} for name in ("ab", "cd")]
    stored, now = ({**run_trace.folder_rows(scouted, 2), **ladder} for ladder in ladders)
    difference = run_trace.first_difference(stored, now, 2)
    assert difference == "the ladder: hash of its starts is ab in the record and cd now"


def test_a_missing_evaluation_and_numbers_that_are_none(scouted):
    stored, now = run_trace.folder_rows(scouted, 8), run_trace.folder_rows(scouted, 8)
    gone = {place: row for place, row in now.items() if place != (4, True)}
    difference = run_trace.first_difference(stored, gone, 8)
    assert difference == "the evaluation after 4 windows is in the record and not there now"
    difference = run_trace.first_difference(gone, stored, 8)
    assert difference == "the evaluation after 4 windows is there now and not in the record"
    assert run_trace.first_difference(gone, stored, 3) is None
    for rows in (stored, now):
        rows[WINDOW_0]["the learner's kl"] = float("nan")
    assert run_trace.first_difference(stored, now, 8) is None


def test_what_is_not_as_it_was():
    on = {"backend": "cpu", "device": "cpu", "processor": "A", "cores": 2, "threads": 2}
    stored_about = {
        "versions": {"python": "3.11.7", "jax": "0.11.2", "minigrid": "3.2.0"},
        "source": "ab",
        "ran_on": on,
    }
    here = {"versions": {"python": "3.11.9", "jax": "0.10.2", "mujoco": "3.3.0"}, "source": "cd"}
    here["ran_on"] = {**on, "threads": 1, "cores": 64}
    assert repeat.differing(stored_about, here) == [
        "jax 0.11.2 there, 0.10.2 here",
        "minigrid 3.2.0 there, none here",
        "source ab there, cd here",
        "number of threads 2 there, 1 here",
    ]
    assert repeat.differing(stored_about, stored_about) == []
    old = {"versions": here["versions"]}
    assert repeat.differing(old, here)[-1] == "unknown number of threads there, 1 here"
    gpu = {**stored_about, "ran_on": {**on, "backend": "gpu", "deterministic": True}}
    assert repeat.differing(gpu, gpu) == []
    chance = {**gpu, "ran_on": {**gpu["ran_on"], "deterministic": False}}
    assert repeat.differing(gpu, chance) == ["XLA's deterministic operations True there, False here"]


# -- what cannot be had again -------------------------------------------------------------------------------------


def test_refusals_come_before_training(scouted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(repeat, "WorkerProcess", lambda *arguments: pytest.fail("trained"))
    record, config = scouted.with_suffix(".npz"), read_run(scouted)["config"]

    def refused(about):
        assert main(["repeat", str(changed(record, tmp_path / "x.npz", about))]) == 2
        return capsys.readouterr().err

    assert "was trained on bank 000000000000…, and 'doorkey-small' now has" in refused({"bank_sha256": "0" * 64})
    policy = {**config, "ladder": "policy", "ladder_from": str(tmp_path / "gone")}
    said = refused({"config": policy})
    assert "x.npz cannot be repeated without the runs that its ladder comes from: --from: " in said
    assert "its config has colour" in refused({"config": {**config, "colour": "red"}})
    assert main(["repeat", str(record), "--windows", "0"]) == 2
    assert main(["repeat", str(record), "--threads", "-1"]) == 2
    assert main(["repeat", str(ROOT / "README.md")]) == 2
    assert main(["repeat", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--windows is 0, but must be at least 1" in said
    assert "README.md is no compact record, or a damaged one: it is not a zip file" in said
    assert "is no run folder: there is no run.json in it" in said


def test_a_run_that_fails_is_one_sentence(scouted, tmp_path, capsys):
    config = read_run(scouted)["config"]
    ours = {**config, "ladder": "policy", "ladder_from": str(scouted)}  # of which the checkpoints are taken away
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "run.json").write_bytes((scouted / "run.json").read_bytes())
    record = changed(
        scouted.with_suffix(".npz"),
        tmp_path / "x.npz",
        {"config": {**ours, "ladder_from": str(tmp_path / "source")}},
    )
    assert main(["repeat", str(record)]) == 2
    assert "has no checkpoint: there is no policy to take a ladder from yet" in capsys.readouterr().err


LATER = {"random_hold": 1, "random_each": False, "clip_targets": False}


def test_constants_that_came_later_have_their_defaults(tmp_path):
    """Not those of a preset of today: Meta-World's holds random actions for ten steps, and old runs did not."""
    path = next(path for path in RESULTS if "metaworld-pickplace/scout" in path.as_posix())
    stored_config = compact.unpack(path).about["config"]
    assert repeat.config_of(repeat.read(path, 1)).learner["random_hold"] == 10
    old = {**stored_config, "learner": {k: v for k, v in stored_config["learner"].items() if k != "random_hold"}}
    old = {k: v for k, v in old.items() if k not in ("algorithm", "preset", "ladder_from", "ladder_fallback")}
    stored = repeat.read(changed(path, tmp_path / "old.npz", {"config": old, "ran_on": {}}), 1)
    assert repeat.config_of(stored).learner == {**stored_config["learner"], **LATER}
    assert stored.threads is None


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: "-".join(path.with_suffix("").parts[-3:]))
def test_every_committed_record_can_be_asked_for(path):
    """Its config is understood, its bank is the one of today, and every number of its own is in the config."""
    stored = repeat.read(path, 50)
    config = repeat.config_of(stored)
    stored_config = stored.about["config"]
    assert {name: config.as_dict()[name] for name in stored_config if name not in ("learner", "constants")} == {
        name: value for name, value in stored_config.items() if name not in ("learner", "constants")
    }
    assert config.learner.items() >= stored_config["learner"].items()
    assert config.constants.items() >= stored_config["constants"].items()
    assert stored.windows == 50


# -- the committed records ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_committed_record_of_every_family_comes_out_again(family):
    """Of those that were made with these versions on this type of machine, the first."""
    configs = {path: compact.unpack(path).about["config"] for path in RESULTS}
    records = [path for path in RESULTS if SETTINGS[configs[path]["setting"]].family == family]
    records = [path for path in records if configs[path]["ladder"] != "policy"]  # it takes runs that are not committed
    if not records:
        pytest.skip(f"{family}: no record is committed")
    unlike = {path: unlike_here(compact.unpack(path).about) for path in records}
    fitting = [path for path in records if not unlike[path]]
    if not fitting:
        newest = max(records, key=lambda path: "ran_on" in compact.unpack(path).about)
        pytest.skip(f"{family}: none of {len(records)}; {newest.relative_to(ROOT)}: {'; '.join(unlike[newest])}")
    said = []
    difference = repeat.repeat(repeat.read(fitting[0], 50), say=said.extend)
    assert difference is None, f"{fitting[0].relative_to(ROOT)}: {difference} ({'; '.join(said)})"


def unlike_here(about):
    """What differs. A record from before runs kept what they ran on promises nothing: its threads are not known.

    Threads are given as the record says, and the source is not asked about: it is what is tested.
    """
    if "ran_on" not in about:
        return ["it does not say what it ran on"]
    here = {
        "versions": versions(),
        "source": about["source"],
        "ran_on": {**ran_on(), "threads": about["ran_on"]["threads"]},
    }
    return repeat.differing(about, here)
