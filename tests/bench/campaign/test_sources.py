"""Runs whose ladder comes from another run's policy: the same wherever the folder is, and after their source."""

import json
import shutil

import pytest

from scout_rl.bench.campaign import conduct, state
from scout_rl.bench.campaign.file import load
from scout_rl.bench.campaign.state import Phase
from scout_rl.bench.run.sources import name_below, normalised, with_stored_sources
from scout_rl.bench.run.store import open_store
from scout_rl.bench.run.worker import _config
from tests.bench.campaign.small_campaigns import campaign, finish
from tests.bench.campaign.test_state import Scripted, do, plant

SOURCE = """
[[runs]]
settings = ["doorkey-small"]
rules = ["target"]
seeds = [40]
"""
TAKER = """
[[runs]]
settings = ["doorkey-small"]
rules = ["scout"]
seeds = [40]
ladders = ["policy"]
ladder_from = "{out}/{setting}/target/{seed}-windows8"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[defaults]\nwindows = 8\n" + TAKER + SOURCE)
    return path


def test_one_spelling_of_a_folder():
    assert [normalised(out) for out in ("runs", "runs/", "./runs", "a//runs/", "/a/runs/", ".")] == [
        *("runs", "runs", "runs", "a/runs", "/a/runs", ".")
    ]
    assert normalised("s3://bucket/runs/") == "s3://bucket/runs"
    assert name_below("runs", "./runs/a/b/40/") == "a/b/40"
    assert name_below(".", "a/b/40") == "a/b/40"
    assert name_below("runs", "elsewhere/a/b/40") is None
    assert name_below("runs", "") is None


def test_sources_are_the_same_by_their_name_below_the_folder():
    def spelled(stored, current, out="new/runs"):
        return with_stored_sources({"ladder_from": current}, {"ladder_from": stored}, out)["ladder_from"] == stored

    assert spelled("/old/place/a/b/40", "new/runs/a/b/40")
    assert spelled("new/runs//a/b/40/", "new/runs/a/b/40")
    assert not spelled("/old/place/a/b/41", "new/runs/a/b/40")
    assert not spelled("/old/place/a/c/40", "new/runs/a/b/40")
    assert not spelled("one/a/b/40", "other/a/b/40")  # not below the folder of runs: it may be another run
    assert not spelled("", "new/runs/a/b/40")
    assert with_stored_sources({"ladder_from": "new/runs/a/b/40"}, {"ladder_from": "old/a/b/40"}, "new/runs") == {
        "ladder_from": "old/a/b/40"
    }


@pytest.mark.parametrize("spelling", ["runs/", "./runs", "moved", "{tmp}/runs", "{tmp}/other/../runs/"])
def test_finished_is_finished_wherever_the_folder_is(file, tmp_path, monkeypatch, spelling):
    monkeypatch.chdir(tmp_path)
    for run in load(file, "runs").runs:
        plant(run, open_store("runs"), 8, checkpoint=8)
    if spelling == "moved":
        shutil.move("runs", "moved")
    out = spelling.format(tmp=tmp_path)
    again = load(file, out)
    assert again.runs[0].needs == (again.runs[1].name,)
    states = conduct.survey(again.runs, open_store(out), None)
    assert [each.phase for each in states.values()] == [Phase.FINISHED] * 2


def test_another_source_is_another_run(file, tmp_path):
    store = open_store(str(tmp_path / "runs"))
    taker, _ = load(file, str(tmp_path / "runs")).runs
    plant(
        taker, store, 8, checkpoint=8, config={**taker.config.as_dict(), "ladder_from": "runs/doorkey-small/scout/40"}
    )
    current = state.run_state(taker, store)
    assert current.phase is Phase.FAILED
    assert "holds another run: ladder_from is 'runs/doorkey-small/scout/40' there" in current.note


def test_a_worker_goes_on_with_the_config_that_the_run_began_with(file, tmp_path):
    """Its checkpoints are of that config; before there is a ladder the sources are looked for where they are now."""
    store = open_store(str(tmp_path / "runs"))
    taker, _ = load(file, str(tmp_path / "runs")).runs
    old = {**taker.config.as_dict(), "ladder_from": "/old/doorkey-small/target/40-windows8"}
    home = store.local_folder(taker.name)
    home.mkdir(parents=True)
    (home / "run.json").write_text(json.dumps({"schema": 1, "config": old}))
    assert _config(taker.name, taker.config.as_dict(), store) == taker.config.as_dict()
    (home / "ladder.npz").write_bytes(b"")
    assert _config(taker.name, taker.config.as_dict(), store) == old


def test_next_takes_what_a_run_needs_first(file, tmp_path):
    store = open_store(str(tmp_path / "runs"))
    runs = load(file, str(tmp_path / "runs")).runs
    taker, source = runs
    for expected in (source, taker):
        before = conduct.survey(runs, store, None)
        (one,) = todo = conduct.missing(runs, before, 1)
        assert one == expected
        engine = Scripted(store)
        conduct.conduct(runs, todo, before, store, engine, every=0)
        assert engine.order == [expected.name]
    assert conduct.missing(runs, conduct.survey(runs, store, None), 1) == []


def test_next_passes_over_a_run_whose_source_failed(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("[defaults]\nwindows = 8\n" + TAKER + SOURCE + SOURCE.replace("target", "anneal"))
    store = open_store(str(tmp_path / "runs"))
    runs = load(file, str(tmp_path / "runs")).runs
    taker, source, other = runs
    for _ in range(state.CHANCES):
        state.add_failure(source, store, "no")
    states = conduct.survey(runs, store, None)
    assert conduct.missing(runs, states, 1) == [other]
    after = do(runs, store, Scripted(store))
    assert after[taker.name].note == f"it needs {source.name}, which is failed"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_moved_campaign_with_a_policy_ladder_goes_on(tmp_path):
    """Real runs: stopped after the ladder was made, moved, spelled in another way; nothing is trained twice."""
    file, out = tmp_path / "a.toml", tmp_path / "runs"
    fields = "windows = 4\nepisodes = 4\nevaluate_every = 4\ncheckpoint_every = 2\n"
    learner = "learner = { epochs = 1, row_fractions = [1.0], minibatch = 640 }\n"
    file.write_text(f"[defaults]\n{fields}{learner}" + SOURCE)
    (source,) = load(file, str(out)).runs
    taker = TAKER.replace("target/{seed}-windows8", "target/" + source.name.split("/")[-1])
    file.write_text(file.read_text() + taker)
    code, printed = finish(campaign(file, out))
    assert code == 0, printed
    run = load(file, str(out)).runs[1]
    for name in ("windows.jsonl", "timing.jsonl"):  # as a death after the second window leaves it
        rows = (out / run.name / name).read_text().splitlines(keepends=True)
        (out / run.name / name).write_text("".join(rows[:3]))
    shutil.rmtree(out / run.name / "checkpoints" / "00000004")
    shutil.move(out, tmp_path / "moved")
    code, printed = finish(campaign(file, f"{tmp_path}/moved/"))
    assert (code, printed.splitlines()[-2]) == (0, "2 runs: 2 finished")
    said = (tmp_path / "moved/.campaign" / f"{run.name}.log").read_text()
    assert "from window 2" in said
