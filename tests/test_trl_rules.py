"""The folder of benchmarks.trl_rules: what is kept, run again, refused and drawn. The trainings are planted."""

import json
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")
from benchmarks import trl_rules

EXAMPLE = """
import json
from pathlib import Path
from typing import NamedTuple

class Size(NamedTuple):
    taught: int = 5
    steps: int = 40
    held_out: int = 64

SIZES = {"small": Size(), "gpu": Size(9, 300, 256)}
killed = Path(__file__).with_name("killed")

def base_model(size, cache):
    cache.exists() or cache.write_text(str(size.taught))
    return cache.read_text()

def train(rule, seed, size, model, out, minutes):
    assert model == str(size.taught), "the base model of this size"
    (Path(out) / "records").mkdir(parents=True)  # as a curriculum, which refuses records that are there
    if killed.exists():
        raise KeyboardInterrupt
    rows = [{"window": w, "success": seed / 100} for w in range(20, size.steps + 1, 20)]
    (Path(out) / "records/evaluations.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command; returns the curves that it wrote under the name."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/trl_addition.py").write_text(EXAMPLE)
    monkeypatch.setattr(trl_rules, "ROOT", tmp_path)

    def call(options, name="trl-rules"):
        monkeypatch.setattr(sys, "argv", ["trl_rules", str(tmp_path / "out"), *options.split()])
        trl_rules.main()
        return json.loads((tmp_path / f"out/{name}.json").read_text())

    return call


def test_commands_with_one_folder_do_not_meet(run):
    """Other sizes and names have runs and a base model of their own, and only what was asked for is drawn."""
    first = run("--rules ability scout --seeds 40 41")
    assert first == {rule: {s: [[20, int(s) / 100], [40, int(s) / 100]] for s in ("40", "41")} for rule in first}
    assert list(first) == ["ability", "scout"]
    (curve,) = run("--size gpu --rules ability --seeds 40", "trl-rules-gpu")["ability"].values()
    assert len(curve) == 15
    named = run("--rules ability-alike ability --seeds 43 --held-out 512 --name alike", "alike")
    assert named == {"ability-alike": {"43": [[20, 0.43], [40, 0.43]]}, "ability": {"43": [[20, 0.43], [40, 0.43]]}}
    assert run("--rules scout --seeds 41") == {"scout": {"41": first["scout"]["41"]}}


@pytest.mark.parametrize("other", ["--held-out 512", "--steps 20", "--taught 9", "--minutes 1", "--size gpu"])
def test_a_name_whose_runs_were_made_otherwise_is_refused(run, other):
    run("--rules ability --seeds 40 --name mine", "mine")
    with pytest.raises(SystemExit, match=r"mine holds runs with other options .*: give another --name or OUT"):
        run(f"--rules scout --seeds 40 --name mine {other}", "mine")


def test_a_run_that_was_cut_is_run_again(run, tmp_path):
    run("--rules ability --seeds 40")
    (done,) = (tmp_path / "out").rglob("done")
    before = done.stat().st_mtime_ns
    (tmp_path / "examples/killed").touch()
    with pytest.raises(KeyboardInterrupt):
        run("--rules ability --seeds 40 41")
    (tmp_path / "examples/killed").unlink()
    assert set(run("--rules ability --seeds 40 41")["ability"]) == {"40", "41"}
    assert done.stat().st_mtime_ns == before, "what is done is kept"
