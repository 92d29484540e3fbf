"""`scout evaluate`: the recorded outcomes again, the same in the stock environment, and a film of it."""

import importlib
import json
import shutil

import numpy as np
import pytest
from rich.console import Console

from scout_rl.bench.families import load_bank
from scout_rl.bench.families.minigrid import MiniGrid
from scout_rl.bench.families.minigrid.stock import Stock
from scout_rl.bench.rollouts.evaluate import by_group
from scout_rl.bench.run import trained
from scout_rl.bench.run.train import train
from scout_rl.bench.settings.settings import setting
from scout_rl.cli import main
from scout_rl.records import tables as records
from tests.bench.run.run_helpers import tiny

pytestmark = pytest.mark.usefixtures("shared_parts")

LAST = 6
command = importlib.import_module("scout_rl.commands.evaluate")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A policy trained a little: six windows, checkpoints after three and six, an evaluation after six alone."""
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    train(tiny(rule="random", seed=46, windows=LAST, evaluate_every=LAST), folder, say=lambda sentence: None)
    return folder


def printed(capsys):
    """What was printed, without line breaks."""
    return " ".join(capsys.readouterr().out.split())


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewritten(run, folder, change):
    """A copy of the run with its last evaluation row changed."""
    shutil.copytree(run, folder)
    rows = records.read_rows(folder / "evaluations.jsonl")
    change(rows[-1])
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_equal_to_the_record_and_to_the_stock_environment(run, capsys):
    before = everything(run)
    assert main(["evaluate", str(run), "--stock"]) == 0
    out = printed(capsys)
    success = records.read_rows(run / "evaluations.jsonl")[-1]["success"]
    assert 0 < success < 1  # so that the comparison has something to compare
    assert f"doorkey-small, rule random, seed 46, window {LAST} of {LAST}" in out
    assert f"│ all │ 40 │ {round(40 * success)} │ {success:.3f} │ {success:.3f} │ {success:.3f} │" in out
    assert "Equal to the run's own evaluation at window 6, context by context." in out
    assert "The stock environment agrees in all 40 contexts, view by view" in out
    assert everything(run) == before


def test_groups_and_the_worst_of_them(run, capsys):
    split = setting("doorkey-split-small")
    part = load_bank(split).held_out
    outcomes = part.evaluation_group == 0
    outcomes[-1] = True  # all 20 short contexts, 1 of the 20 long ones
    ours = by_group(split, part, outcomes)
    trained_run = trained.load(run)._replace(setting=split, bank=load_bank(split), recorded=None)
    Console().print(command._table(trained_run, ours, ~outcomes))
    out = printed(capsys)
    assert "│ short │ 20 │ 20 │ 1.000 │ - │ 0.000 │" in out
    assert "│ long │ 20 │ 1 │ 0.050 │ - │ 0.950 │" in out
    assert "│ worst group │ │ │ 0.050 │ - │ 0.000 │" in out
    assert "│ all contexts │ 40 │ 21 │ 0.525 │ - │ 0.475 │" in out


def test_another_outcome_than_recorded_is_found(run, tmp_path, capsys):
    def flip(row):
        row["outcomes"][7] = 1 - row["outcomes"][7]

    assert main(["evaluate", str(rewritten(run, tmp_path / "run", flip))]) == 1
    assert "1 of 40 held-out contexts end otherwise than in the run's own evaluation at window 6: 7" in printed(capsys)


def test_other_means_than_recorded_are_found(run, tmp_path, capsys):
    """What the table shows beside ours is compared, and not the outcomes alone."""
    right = records.read_rows(run / "evaluations.jsonl")[-1]["success"]

    def fake(row):
        row["success"], row["groups"] = 0.99, {"all": 0.99}

    assert main(["evaluate", str(rewritten(run, tmp_path / "run", fake))]) == 1
    out = printed(capsys)
    assert f"The run recorded a success of 0.99 for all contexts, and it is {right}." in out
    assert f"The run recorded a success of 0.99 for all, and it is {right}." in out
    assert "Equal to" not in out


def test_an_evaluation_that_was_due_and_is_not_there(run, tmp_path, capsys):
    folder = rewritten(run, tmp_path / "run", lambda row: None)
    rows = (folder / "evaluations.jsonl").read_text().splitlines(keepends=True)
    (folder / "evaluations.jsonl").write_text("".join(rows[:-1]))
    assert main(["evaluate", str(folder)]) == 1
    assert "The run recorded no evaluation at window 6, where one was due." in printed(capsys)


def test_a_damaged_evaluation_is_named(run, tmp_path, capsys):
    def other_groups(row):
        row["groups"] = {"some": 1.0}

    folder = rewritten(run, tmp_path / "run", other_groups)
    assert main(["evaluate", str(folder)]) == 2
    path = folder / "evaluations.jsonl"
    assert f"{path} is damaged: its evaluation after 6 windows is not of this bank's" in capsys.readouterr().err
    path.write_text("garbage\n")
    assert main(["evaluate", str(folder)]) == 2
    assert f"{path} is damaged: Expecting value" in capsys.readouterr().err


def test_a_checkpoint_without_an_evaluation(run, capsys):
    assert main(["evaluate", str(run), "--checkpoint", "3"]) == 0
    out = printed(capsys)
    assert "window 3 of 6" in out
    assert "The run recorded no evaluation at window 3." in out


def test_a_planted_difference_is_found(run, monkeypatch, capsys):
    """One stock environment denies its success, another turns the wrong way once: both contexts are named."""
    trained_run = trained.load(run)
    row = records.read_rows(run / "evaluations.jsonl")[-1]
    seeds = trained_run.bank.held_out.contexts["seed"]
    denied, turned = np.flatnonzero(row["outcomes"])[:2]

    class Planted(Stock):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.seed == seeds[turned] and self.steps == 2:
                action = {0: 1}.get(int(action), 0)
            seen = super().step(action)
            return seen._replace(success=False) if self.seed == seeds[denied] else seen

    monkeypatch.setattr(MiniGrid, "stock_env", lambda self, setting, context, pixels=0: Planted(setting, context))
    assert main(["evaluate", str(run), "--stock"]) == 1
    out = printed(capsys)
    assert "The stock environment differs in 2 of 40 contexts" in out
    assert f"held-out context {denied} (all): ours succeeds, stock does not; the simulators first differ at step" in out
    assert f"held-out context {turned} (all): ours succeeds, stock" in out
    assert "the simulators first differ at step 2" in out


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_a_film_of_chosen_cells(run, tmp_path, capsys, name):
    import imageio.v3 as imageio

    path = tmp_path / name
    arguments = ["evaluate", str(run), "--video", str(path), "--context", "3", "11", "--level", "4"]
    assert main(arguments) == 0
    assert "Training contexts 3, 11 on film, level 4:" in printed(capsys)
    frames = imageio.imread(path)
    assert len(frames) > 2
    assert frames.shape[1] > frames.shape[2] > 190  # two contexts, one below the other
    assert (frames[0] != frames[-1]).any()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{tmp}"], "{tmp} is no run folder: there is no run.json in it"),
        (["{tmp}/nowhere"], "{tmp}/nowhere is no run folder"),
        (["{run}", "--checkpoint", "5"], "{run}/checkpoints has no checkpoint of window 5; it has 3, 6"),
        (["{run}", "--video", "film.avi"], "a video is a .gif or a .mp4 file, not 'film.avi'"),
        (["{run}", "--video", "{tmp}/no/film.gif"], "{tmp}/no/film.gif cannot be written: there is no folder"),
        (["{run}", "--video", "{tmp}/film.gif", "--context", "40"], "context 40 is not one of this run's: 0..39"),
        (["{run}", "--video", "{tmp}/film.gif", "--level", "5"], "level 5 is not one of this run's: 0..4"),
        (["{run}", "--level", "2"], "--context and --level choose what a --video shows"),
    ],
)
def test_a_refusal_is_one_sentence(run, tmp_path, capsys, arguments, sentence):
    names = {"run": run, "tmp": tmp_path}
    assert main(["evaluate", *(word.format(**names) for word in arguments)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("scout: " + sentence.format(**names))
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def damage_newest(folder):
    (folder / "checkpoints" / "00000006" / "learner.npz").write_bytes(b"")


def remove_all(folder):
    shutil.rmtree(folder / "checkpoints")


def another_bank(folder):
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "bank_sha256": "0" * 64}))


def another_version(folder):
    about = json.loads((folder / "run.json").read_text())
    about["config"]["replay"] = 1
    (folder / "run.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        (remove_all, [], "has no whole checkpoint: nothing to evaluate yet"),
        (damage_newest, ["--checkpoint", "6"], "is damaged (learner.npz does not have its hash)"),
        (another_bank, [], "was trained on another bank: 000000000000"),
        (another_version, [], "was left by another version: its config differs in replay"),
    ],
)
def test_a_damaged_folder_is_one_sentence(run, tmp_path, capsys, change, arguments, sentence):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    change(folder)
    assert main(["evaluate", str(folder), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_damaged_newest_checkpoint_is_passed_over(run, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    damage_newest(folder)
    assert main(["evaluate", str(folder)]) == 0
    out = printed(capsys)
    assert "is damaged (learner.npz does not have its hash); falling back to the one before it" in out
    assert "window 3 of 6" in out
