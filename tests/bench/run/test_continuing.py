"""A run that is started again: what it trusts, what it falls back to, and what it refuses without touching a byte."""

import json
import os
import re
import shutil

import pytest

from scout_rl.bench.run import checkpoint, repeat
from scout_rl.bench.run import folder as run_folder
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.run.train import train
from scout_rl.records import made_with
from scout_rl.records.compact import pack, unpack
from tests.bench.run.run_helpers import everything, tiny

pytestmark = pytest.mark.usefixtures("shared_parts")


@pytest.fixture
def whole(tiny_run):
    """Eight windows, evaluated after 0, 4 and 8, with checkpoints of 6 and 8."""
    return tiny_run


@pytest.fixture
def run(whole, tmp_path):
    """A copy to be damaged."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def every_byte(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def again(run):
    """The same command again; what it said."""
    said = []
    train(tiny(), run, say=said.append)
    return said


def refused(run):
    """It is refused, and every byte stays; the sentence."""
    before = every_byte(run)
    with pytest.raises(ValueError, match=re.escape(str(run))) as refusal:
        again(run)
    assert every_byte(run) == before
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


# -- damaged files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["windows.jsonl", "metrics.jsonl", "evaluations.jsonl", "timing.jsonl", "events.jsonl", "config.json", "run.json"],
)
def test_a_file_with_wrong_bytes_is_named(run, name):
    if name == "events.jsonl":  # no frontier moved yet
        (run / name).write_text('{"window":3}\n')
    data = bytearray((run / name).read_bytes())
    data[5:9] = b"\xff\xfe\x00\xff"
    (run / name).write_bytes(data)
    assert refused(run).startswith(f"{run / name} is damaged: ")


def manifest(run, change):
    """Replace what the manifest of the newest checkpoint says."""
    path = run / "checkpoints" / "00000008" / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: [content], "manifest.json: "),
        pytest.param(lambda content: 7, "manifest.json: ", marks=pytest.mark.slow),
        (
            lambda content: {k: v for k, v in content.items() if k not in ("identity", "sha256")},
            "there is no 'identity'",
        ),
        pytest.param(
            lambda content: {k: v for k, v in content.items() if k not in ("schema", "sha256")},
            "there is no 'schema'",
            marks=pytest.mark.slow,
        ),
        (lambda content: {**content, "meta": {**content["meta"], "environment_steps": 1}}, "it does not have its hash"),
        pytest.param(lambda content: {**content, "schema": 9}, "it does not have its hash", marks=pytest.mark.slow),
        pytest.param(
            lambda content: {**content, "identity": "0" * 64}, "it does not have its hash", marks=pytest.mark.slow
        ),
    ],
    ids=["a list", "a number", "no identity", "no schema", "other steps", "other schema", "other identity"],
)
def test_a_wrong_manifest_is_a_damaged_checkpoint(run, whole, change, problem):
    manifest(run, change)
    said = again(run)
    assert "checkpoint" in said[0]
    assert "00000008 is damaged (manifest.json: " in said[0]
    assert problem in said[0]
    assert "from window 6" in said[1]
    assert everything(run) == everything(whole)


def test_manifests_of_earlier_versions_have_no_hash(run, whole):
    manifest(run, lambda content: {name: value for name, value in content.items() if name != "sha256"})
    newest = checkpoint.newest(run / "checkpoints", tiny().identity, pytest.fail)
    assert newest.window == 8
    assert newest.meta["environment_steps"] > 0


def test_a_wrong_manifest_does_not_stop_the_next_checkpoint(tmp_path):
    for window in (1, 2, 3):
        checkpoint.write(tmp_path, window, "id", {}, {}, new={f"s{window}": {}})
        (tmp_path / f"{window:08d}" / "manifest.json").write_text("[]")
    assert len(list((tmp_path / "shared").iterdir())) == 3  # none is dropped where it is not known who needs it


# -- tables that a checkpoint is ahead of -----------------------------------------------------------------------------


def keep(run, name, rows):
    """Only the first rows of a table."""
    path = run / name
    if name == "frontier.int8":
        path.write_bytes(path.read_bytes()[: rows * 40])
    else:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:rows]))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        pytest.param("windows.jsonl", 7, marks=pytest.mark.slow),
        ("windows.jsonl", 6),
        ("metrics.jsonl", 7),
        ("timing.jsonl", 6),
        ("evaluations.jsonl", 2),
        ("frontier.int8", 7),
    ],
)
def test_a_checkpoint_ahead_of_a_table_is_passed_over(run, whole, name, rows):
    """As a power cut may leave them: the checkpoint on the disk, the last rows not."""
    keep(run, name, rows)
    said = again(run)
    assert f"00000008 cannot be used: {name} is whole for" in said[0]
    assert "from window 6" in said[1]
    assert everything(run) == everything(whole)
    assert (run / "timing.jsonl").read_bytes().count(b"\n") == 8


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("windows.jsonl", 0),
        ("windows.jsonl", 5),
        ("metrics.jsonl", 5),
        ("metrics.jsonl", 0),
        ("timing.jsonl", 3),
        ("evaluations.jsonl", 1),
        ("evaluations.jsonl", 0),
        ("frontier.int8", 5),
        ("frontier.int8", 0),
    ],
)
def test_where_no_checkpoint_is_reached_nothing_is_cut(run, name, rows):
    keep(run, name, rows)
    said = refused(run)
    assert f"cannot be continued: checkpoint {run / 'checkpoints' / '00000006'} cannot be used: {name} is whole" in said
    assert said.endswith("move the folder away, or choose another (--out)")
    shutil.rmtree(run / "checkpoints" / "00000008")
    assert refused(run) == said


@pytest.mark.parametrize("name", ["windows.jsonl", "metrics.jsonl", "evaluations.jsonl"])
def test_rows_in_the_middle_count_too(run, name):
    lines = (run / name).read_bytes().splitlines(keepends=True)
    (run / name).write_bytes(b"".join([*lines[:1], *lines[2:]]))
    assert f"{name} is whole for" in refused(run)
    (run / name).write_bytes(b"".join([*lines[:2], *lines[1:]]))  # one twice
    assert f"{name} is whole for" in refused(run)


def test_a_move_without_its_event_is_a_gap(run, whole):
    """No frontier moves in eight windows: one is planted, in the file of frontiers alone."""
    levels = bytearray((run / "frontier.int8").read_bytes())
    levels[7 * 40] -= 1
    (run / "frontier.int8").write_bytes(levels)
    assert "events.jsonl is whole for 7 windows" in again(run)[0]
    assert everything(run) == everything(whole)


def test_outcomes_that_are_not_the_checkpoints(run, whole):
    rows = [json.loads(line) for line in (run / "windows.jsonl").read_text().splitlines()]
    rows[6]["success"][0] ^= 1
    (run / "windows.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    assert "windows.jsonl holds other outcomes than it was made from" in again(run)[0]
    assert everything(run) == everything(whole)


def test_records_are_on_the_disk_before_their_checkpoint(monkeypatch, tmp_path):
    done = []
    monkeypatch.setattr(os, "fsync", lambda handle: done.append(os.readlink(f"/proc/self/fd/{handle}")))
    train(tiny(windows=1), tmp_path / "run", say=lambda sentence: None)
    names = [name.removeprefix(f"{tmp_path}/run").lstrip("/") for name in done]
    first = next(i for i, name in enumerate(names) if name.startswith("checkpoints/"))
    tables = {"windows.jsonl", "metrics.jsonl", "evaluations.jsonl", "timing.jsonl", "frontier.int8", "config.json"}
    assert set(names[:first]) >= {*tables, "run.json", ""}


# -- no checkpoint ----------------------------------------------------------------------------------------------------


def lose_checkpoints(run, how, file):
    """All of them gone, or that file of each emptied."""
    if how == "gone":
        shutil.rmtree(run / "checkpoints")
    for path in (run / "checkpoints").glob(f"*/{file}"):
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_finished_run_without_checkpoints_stays_finished(run, how):
    lose_checkpoints(run, how, "learner.npz")
    before = every_byte(run)
    assert f"{run} is finished: all 8 windows are there; without a checkpoint its policy is not" in again(run)
    assert every_byte(run) == before


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_an_unfinished_run_without_checkpoints_is_refused(run, how):
    lose_checkpoints(run, how, "manifest.json")
    for name in ("windows.jsonl", "metrics.jsonl", "timing.jsonl", "frontier.int8"):
        keep(run, name, 7)
    keep(run, "evaluations.jsonl", 2)
    why = "it has no checkpoint" if how == "gone" else "none of its checkpoints is whole"
    assert f"{run} holds 7 windows, and cannot be continued: {why}; nothing was changed; move" in refused(run)


def test_a_run_that_never_came_to_a_checkpoint_begins_again(run, whole):
    shutil.rmtree(run / "checkpoints")
    for name in ("windows.jsonl", "metrics.jsonl", "timing.jsonl", "frontier.int8"):
        keep(run, name, 3)
    keep(run, "evaluations.jsonl", 1)
    assert again(run) == [f"{run} was stopped before its first checkpoint: it begins again"]
    assert everything(run) == everything(whole)


def test_records_without_a_run_are_nobodys(run):
    (run / "run.json").unlink()
    assert "holds records, but no run.json" in refused(run)


def test_checkpoints_without_tables(run):
    for name in ("windows", "metrics", "timing", "evaluations", "events"):
        (run / f"{name}.jsonl").unlink(missing_ok=True)
    (run / "frontier.int8").unlink()
    assert "it has checkpoints, but no tables" in refused(run)


# -- what made which windows ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def second_source(tiny_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "source", lambda: "first")
        train(tiny(), folder, say=lambda sentence: None, until=6)
        patch.setattr(run_folder, "source", lambda: "second")
        again(folder)
    return folder


@pytest.fixture
def continued(second_source, tmp_path, monkeypatch):
    """A copy of a run with six windows by one source, two by another."""
    monkeypatch.setattr(run_folder, "source", lambda: "second")
    shutil.copytree(second_source, tmp_path / "continued")
    return tmp_path / "continued"


def test_what_continued_a_run_is_noted(continued, monkeypatch, tmp_path):
    about = read_run(continued)
    assert about["source"] == "first"
    (entry,) = about["continued"]
    assert entry == {"from_window": 6, "source": "second", "versions": about["versions"], "ran_on": about["ran_on"]}
    pack(continued, tmp_path / "41.npz")
    assert unpack(tmp_path / "41.npz").about == about
    monkeypatch.setattr(run_folder, "source", lambda: "third")
    again(continued)  # finished: it made nothing
    assert read_run(continued) == about
    shutil.rmtree(continued / "checkpoints" / "00000008")
    again(continued)  # made all that the second had made
    assert [(entry["from_window"], entry["source"]) for entry in read_run(continued)["continued"]] == [(6, "third")]
    shutil.rmtree(continued / "checkpoints" / "00000008")
    monkeypatch.setattr(run_folder, "source", lambda: "first")
    again(continued)
    assert read_run(continued) == {name: value for name, value in about.items() if name != "continued"}


def test_a_run_that_begins_again_has_one_maker():
    stored = {"config": {}, "versions": {"jax": "1"}, "continued": [{"from_window": 3}]}
    now = {"versions": {"jax": "2"}, "source": "s", "ran_on": {}}
    assert made_with.continued_by(stored, now, 0) == {"config": {}, **now}
    assert made_with.continued_by(stored, now, 2)["continued"] == [{"from_window": 2, **now}]
    assert [entry["from_window"] for entry in made_with.continued_by(stored, now, 4)["continued"]] == [3, 4]


def test_repeat_names_what_continued_it(continued, monkeypatch):
    class Copied:
        """A worker that is done at once."""

        def __init__(self, work):
            self.work = work

        def start(self):
            shutil.copytree(continued, f"{self.work['out']}/run", dirs_exist_ok=True)

        def ended(self):
            return True

        def close(self):
            pass

    monkeypatch.setattr(repeat, "WorkerProcess", Copied)
    changed = "windows from 6 on were made with source second, those before with first"
    said = []
    assert repeat.repeat(repeat.read(continued, 8), say=said.append) is None
    assert repeat.repeat(repeat.read(continued, 6), say=said.append) is None
    assert said == [[changed], []]


@pytest.mark.parametrize("wrong", [5, [5], [{}], [{"from_window": "6"}]])
def test_a_list_that_is_none_of_ours(run, wrong):
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**about, "continued": wrong}))
    assert refused(run).startswith(f"{run / 'run.json'} is damaged: ")
