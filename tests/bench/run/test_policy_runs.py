"""Runs whose ladder comes from other runs: what is asked of the sources, and that a run keeps what it began with."""

import contextlib
import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.ladders import policy
from scout_rl.bench.run import ladder as run_ladder
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.run.train import train
from scout_rl.bench.settings.settings import setting
from scout_rl.cli import main
from scout_rl.files.archive import read_archive
from scout_rl.ladders.sources import Sources
from scout_rl.records.compact import pack
from tests.bench.run.run_helpers import everything, tiny

pytestmark = pytest.mark.usefixtures("shared_parts")

SMALL = setting("doorkey-small")


def quiet(sentence):
    pass


def run_of(rule="scout", **changes):
    """Two windows of four rollouts: a policy that still solves a few contexts by chance."""
    return tiny(**{"windows": 2, "evaluate_every": 2, "checkpoint_every": 1, "rule": rule, **changes})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run from the target start and one with scaffolds."""
    home = tmp_path_factory.mktemp("policies")
    train(run_of("target"), home / "target", say=quiet)
    train(run_of("random"), home / "random", say=quiet)
    return home


def policy_run(home, **changes):
    arguments = {"ladder": "policy", "ladder_from": str(home / "target"), "ladder_fallback": str(home / "random")}
    return run_of(**{**arguments, **changes})


@pytest.fixture(scope="module")
def straight(home):
    """A run with the ladder of those two, by the command, never interrupted; and what it said, without line breaks."""
    small = ["--seed", "41", "--windows", "2", "--episodes", "4", "--evaluate-every", "2", "--checkpoint-every", "1"]
    learner = ["--learner.epochs", "1", "--learner.row-fractions", "1.0", "--learner.minibatch", "640"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["train", SMALL.key, *flags(home), *small, *learner, "--out", str(home)]) == 0
    (folder,) = (home / SMALL.key / "scout").glob("41-policy5*")
    return folder, " ".join(said.getvalue().split())


def flags(home):
    return ["--ladder", "policy", "--from", str(home / "target"), "--fallback", str(home / "random")]


def about(folder):
    return json.loads((folder / "ladder.json").read_text())


def test_a_run_keeps_its_ladder_and_says_where_it_came_from(home, straight):
    folder, said = straight
    sources = Sources.from_dict(about(folder))
    assert str(sources) in said
    assert read_run(folder)["config"] == policy_run(home).as_dict()
    assert sources.names == ("target-start policy", "scaffold policy", "solver")
    assert len(sources.source_of) == SMALL.n_train
    assert {0, 2} <= set(sources.source_of)  # the tiny policies solve some contexts, and not all
    for x, source in enumerate(sources.source_of):
        assert [row[x] > 0 for row in sources.succeeded][:source] == [False] * source
        assert source == 2 or sources.succeeded[source][x] > 0
    assert about(folder)["bootstrap_fraction"] == np.mean([source > 0 for source in sources.source_of])
    assert [run["window"] for run in about(folder)["runs"]] == [2, 2]
    assert [run["rule"] for run in about(folder)["runs"]] == ["target", "random"]
    ladder, meta, _ = read_archive(folder / "ladder.npz")
    assert meta == about(folder)
    targets = family("minigrid").target_starts(load_bank(SMALL).train.contexts)
    assert all(np.array_equal(ladder[name][:, 0], array) for name, array in targets.items())
    assert (ladder["step_count"] == 0).all()


def test_the_commands(home, straight, tmp_path, capsys):
    assert main(["ladder", SMALL.key, *flags(home), "--contexts", "0", "5", "--out", str(tmp_path)]) == 0
    assert "0 of 10 cells invalid" in capsys.readouterr().out
    assert (tmp_path / "doorkey-small-policy5.png").exists()
    assert main(["ladder", SMALL.key, "--ladder", "policy"]) == 2
    assert main(["ladder", SMALL.key, "--from", "somewhere"]) == 2
    assert main(["train", SMALL.key, "--ladder", "policy"]) == 2
    assert capsys.readouterr().err.count("belong together") == 3


class Stopped(Exception):
    pass


def stop(progress):
    if progress.window == 1:
        raise Stopped


def stopped(config, folder):
    with pytest.raises(Stopped):
        train(config, folder, watch=stop, say=quiet)
    (folder / "ladder.json").unlink()  # as if killed between the two files


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.bench.run import test_policy_runs as here
kill = lambda progress: os.kill(os.getpid(), signal.SIGKILL) if progress.window == 1 else None
here.train(here.policy_run(Path(sys.argv[1])), Path(sys.argv[2]), watch=kill, say=here.quiet)
"""


def killed(config, folder):
    child = subprocess.run([sys.executable, "-c", KILLED, str(Path(config.ladder_from).parent), folder], check=False)
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("end", [stopped, pytest.param(killed, marks=pytest.mark.slow)])
def test_ended_and_continued_without_its_sources(home, straight, tmp_path, monkeypatch, end):
    """The sources are gone, and the cache is not asked: what is in the folder is enough."""
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("target", "random"):
        shutil.copytree(home / name, moved / name)
    end(policy_run(moved), tmp_path / "run")
    shutil.rmtree(moved)
    monkeypatch.setattr(run_ladder, "ladder_from_runs", lambda *arguments: pytest.fail("asked for again"))
    said = []
    train(policy_run(moved), tmp_path / "run", say=said.append)
    assert said == [f"continuing {tmp_path / 'run'} from window 1"]
    ours, theirs = everything(tmp_path / "run"), everything(straight[0])
    assert ours.pop("run.json") != theirs.pop("run.json")  # the paths
    assert ours == theirs


def test_a_damaged_ladder_is_built_again_if_it_is_the_same(home, straight, tmp_path, monkeypatch):
    shutil.copytree(straight[0], tmp_path / "run")
    stored = tmp_path / "run" / "ladder.npz"
    stored.write_bytes(stored.read_bytes()[:500])
    said, bank = [], load_bank(SMALL)
    run_ladder.run_ladder(tmp_path / "run", policy_run(home), SMALL, bank, said.append)
    assert "damaged" in said[0]
    assert everything(tmp_path / "run") == everything(straight[0])
    # Now a source was trained on, and its newest policy gives another ladder.
    ladder, sources = run_ladder.ladder_from_runs(
        "policy", str(home / "target"), str(home / "random"), SMALL, bank, 5, quiet
    )
    ladder["agent_dir"][7, 3] += 1
    monkeypatch.setattr(run_ladder, "ladder_from_runs", lambda *arguments: (ladder, sources))
    stored.unlink()
    with pytest.raises(ValueError, match=r"the run began with ladder \w{12}, and its sources now give \w{12}: restore"):
        train(policy_run(home), tmp_path / "run", say=quiet)


def test_built_once_for_equal_policies(home, straight, tmp_path, monkeypatch):
    monkeypatch.setattr(policy, "build", lambda *arguments: pytest.fail("built again"))
    first, fallback = str(home / "target"), str(home / "random")
    bank = load_bank(SMALL)
    _, sources = run_ladder.ladder_from_runs("policy", first, fallback, SMALL, bank, 5, quiet)
    assert {**sources, "sha256": about(straight[0])["sha256"]} == about(straight[0])
    earlier = tmp_path / "earlier"
    shutil.copytree(home / "target", earlier)
    shutil.rmtree(max((earlier / "checkpoints").iterdir()))
    for changed in ((fallback, first, 5), (first, "", 5), (first, fallback, 9), (str(earlier), fallback, 5)):
        with pytest.raises(pytest.fail.Exception, match="built again"):
            run_ladder.ladder_from_runs("policy", *changed[:2], SMALL, bank, changed[2], quiet)


def test_a_first_source_with_scaffolds_counts_as_bootstrapped(home, monkeypatch):
    asked = []

    def build(wanted, say):
        asked.extend(wanted.runs)
        raise Stopped

    monkeypatch.setattr(policy, "build", build)
    said = []
    with pytest.raises(Stopped):
        run_ladder.ladder_from_runs("policy", str(home / "random"), "", SMALL, load_bank(SMALL), 5, said.append)
    assert "was trained with scaffolds (rule random): all of its contexts count as bootstrapped" in said[0]
    assert [(source.name, source.assisted) for source in asked] == [("scaffold policy", True)]


@pytest.mark.slow
def test_it_is_repeated_from_its_record_and_without_its_sources_from_its_folder(home, straight, tmp_path, capsys):
    folder, _ = straight
    pack(folder, tmp_path / "record.npz")
    assert main(["repeat", str(tmp_path / "record.npz")]) == 0
    copy = shutil.copytree(folder, tmp_path / "run")
    about_run = read_run(copy)
    about_run["config"] |= {"ladder_from": "gone", "ladder_fallback": "gone too"}
    (copy / "run.json").write_text(json.dumps(about_run))
    assert main(["repeat", str(copy)]) == 0
    assert capsys.readouterr().out.count("equal: all numbers of the first 2 windows") == 2
    pack(copy, tmp_path / "record.npz")
    assert main(["repeat", str(tmp_path / "record.npz")]) == 2
    said = capsys.readouterr().err
    assert "cannot be repeated without the runs that its ladder comes from: --from: gone is no run folder" in said


# -- refused before any training time is spent, and before the folder is claimed -------------------------------------


def test_sources_that_cannot_be_used(home, tmp_path, monkeypatch):
    def refused(message, **changes):
        with pytest.raises(ValueError, match=message):
            train(policy_run(home, **changes), tmp_path / "run", say=quiet)
        assert not (tmp_path / "run").exists()

    refused("--from: .*nowhere is no run folder: there is no run.json in it", ladder_from=str(tmp_path / "nowhere"))
    refused("--fallback: .*nowhere is no run folder", ladder_fallback=str(tmp_path / "nowhere"))
    shutil.copytree(home / "random", tmp_path / "fresh")
    shutil.rmtree(tmp_path / "fresh" / "checkpoints")
    refused("--fallback .*fresh has no checkpoint: there is no policy", ladder_fallback=str(tmp_path / "fresh"))
    refused("--from .*target is a run of 'doorkey-small', and a ladder of 'multiroom-small'", setting="multiroom-small")
    about = read_run(home / "target")
    about["bank_sha256"] = "0" * 64
    (tmp_path / "fresh" / "run.json").write_text(json.dumps(about))
    refused("--from .*fresh was trained on another bank: 000000000000", ladder_from=str(tmp_path / "fresh"))
