"""A run that is started again: what it trusts, what it falls back to, and what it refuses without touching a byte."""

import json
import os
import shutil

import pytest

from scout_rl import checkpoint
from scout_rl.cache import use_compilation_cache
from scout_rl.train import train
from tests.run_helpers import everything, tiny


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Eight windows, evaluated after 0, 4 and 8, with checkpoints of 6 and 8."""
    os.environ.setdefault("SCOUT_CACHE", str(tmp_path_factory.getbasetemp().parent / "scout-cache"))
    use_compilation_cache()
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(tiny(), folder, say=lambda sentence: None)
    return folder


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
    with pytest.raises(ValueError, match=".") as refusal:
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
        (lambda told: [told], "manifest.json: "),
        (lambda told: 7, "manifest.json: "),
        (lambda told: {k: v for k, v in told.items() if k not in ("identity", "sha256")}, "there is no 'identity'"),
        (lambda told: {k: v for k, v in told.items() if k not in ("schema", "sha256")}, "there is no 'schema'"),
        (lambda told: {**told, "meta": {**told["meta"], "environment_steps": 1}}, "it does not have its hash"),
        (lambda told: {**told, "schema": 9}, "it does not have its hash"),
        (lambda told: {**told, "identity": "0" * 64}, "it does not have its hash"),
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
    manifest(run, lambda told: {name: value for name, value in told.items() if name != "sha256"})
    found = checkpoint.newest(run / "checkpoints", tiny().identity, pytest.fail)
    assert found.window == 8
    assert found.meta["environment_steps"] > 0


def test_a_wrong_manifest_does_not_stop_the_next_checkpoint(tmp_path):
    for window in (1, 2, 3):
        checkpoint.write(tmp_path, window, "id", {}, {}, new={f"s{window}": {}})
        (tmp_path / f"{window:08d}" / "manifest.json").write_text("[]")
    assert len(list((tmp_path / "shared").iterdir())) == 3  # none is dropped where it is not known who needs it
