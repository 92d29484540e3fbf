"""Runs under way beside finished ones: listed and drawn, counted in no table, and in nobody's way."""

import json
import shutil

import numpy as np
import pytest

from scout_rl.cli import main
from scout_rl.report.build import report
from scout_rl.report.measure.comparison import evaluated
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import load
from tests.report.planted import config, curve, played_folder, write_compact


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run folder of 40 windows, evaluated at 0, 20 and 40."""
    return played_folder(tmp_path_factory.mktemp("whole") / "run", 40, reach=40)


@pytest.fixture
def runs(whole, tmp_path):
    """A folder of runs with a finished one in it."""
    shutil.copytree(whole, tmp_path / "runs/40")
    return tmp_path / "runs"


def another(runs, seed):
    """A copy of the finished run as one of another seed."""
    shutil.copytree(runs / "40", runs / str(seed))
    description = json.loads((runs / f"{seed}/run.json").read_text())
    description["config"]["seed"] = seed
    (runs / f"{seed}/run.json").write_text(json.dumps(description))
    return runs / str(seed)


def just_begun(runs, seed):
    """Only run.json, as while the ladder is built."""
    folder = another(runs, seed)
    for path in folder.iterdir():
        if path.name != "run.json":
            path.unlink()
    return folder


def killed_in_its_last_evaluation(runs, seed):
    """The window is closed; its evaluation is half written and its time, which comes after, not at all."""
    folder = another(runs, seed)
    times = (folder / "timing.jsonl").read_text().splitlines(keepends=True)
    (folder / "timing.jsonl").write_text("".join(times[:-1]))
    rows = (folder / "evaluations.jsonl").read_text().splitlines(keepends=True)
    (folder / "evaluations.jsonl").write_text("".join(rows[:-1]) + rows[-1][:30])
    return folder


def test_a_run_without_its_last_evaluation_is_not_finished(runs, tmp_path):
    """All windows are closed; the last number there is would stand in the tables as its final."""
    folder = killed_in_its_last_evaluation(runs, 41)
    one, other = load(runs / "40").about, load(folder).about
    assert (one.windows, one.last_evaluation, one.finished) == (40, 40, True)
    assert (other.windows, other.last_evaluation, other.finished) == (40, 20, False)
    (block,) = group([summarise(load(path)) for path in (runs / "40", folder)])
    assert [run.about.name for condition in evaluated(block).conditions for run in condition.runs] == [str(runs / "40")]
    text = report([runs], tmp_path / "out").read_text()
    assert "1 not finished and in no table" in text
    assert "40 of 40 and no last evaluation: not finished, in no table" in text


def test_a_compact_record_without_its_last_evaluation_is_refused(tmp_path):
    """Only finished runs are packed: one that lost its end is damaged."""
    path = write_compact(tmp_path / "100.npz", config(), {"all": curve(60, at=range(0, 121, 20))})
    with np.load(path) as file:
        held = {name: file[name] for name in file.files}
    assert load(path).about.finished
    np.savez(path, **{**held, **{name: held[name][:-1] for name in ("evaluated_at", "outcomes", "groups")}})
    with pytest.raises(ValueError, match="the evaluation after 120 windows is missing"):
        load(path)


def test_a_run_that_has_just_begun_stops_no_report(runs, tmp_path):
    just_begun(runs, 41)
    about = load(runs / "41").about
    assert (about.windows, about.budget, about.finished) == (0, 40, False)
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps(["a"] * 6))
    text = report([runs], tmp_path / "out", groups=labels).read_text()
    assert "2 runs" in text
    assert "0 of 40: not finished, in no table" in text
    assert (tmp_path / "out/tables/planted-success.md").exists()


def test_rows_without_their_config_are_a_loss_and_no_beginning(runs):
    (runs / "40/config.json").unlink()
    with pytest.raises(ValueError, match=r"40 holds no records: there is no config\.json in it"):
        load(runs / "40")


def test_a_log_dir_without_a_closed_window_stops_no_report(runs, tmp_path):
    shutil.copytree(runs / "40", tmp_path / "runs/log")
    for path in (tmp_path / "runs/log").iterdir():
        if path.name != "config.json":
            path.unlink()
    about = load(tmp_path / "runs/log").about
    assert (about.kind, about.windows, about.finished) == ("log_dir", 0, False)
    assert "0: not finished, in no table" in report([runs], tmp_path / "out").read_text()


def test_diagnose_goes_on_after_a_run_that_has_just_begun(runs, capsys):
    begun = just_begun(runs, 39)
    assert main(["diagnose", str(runs)]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first == f"{begun} holds no closed window yet: there is nothing to diagnose."
    assert second.startswith(f"{runs / '40'}: scout on planted, seed 100")


def test_diagnose_without_any_closed_window_is_refused(runs, capsys):
    just_begun(runs, 39)
    shutil.rmtree(runs / "40")
    assert main(["diagnose", str(runs)]) == 2
    assert "39 holds no closed window yet: there is nothing to diagnose" in capsys.readouterr().err
    shutil.copytree(runs / "39", runs / "41")
    assert main(["diagnose", str(runs)]) == 2
    assert "none of the 2 runs holds a closed window yet: there is nothing to diagnose" in capsys.readouterr().err
