"""The overview: rows from the ends of files, runs found below folders, campaigns, alerts, memory."""

import io
import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from scout_rl import Curriculum, rules
from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.metrics import auc
from scout_rl.report.read.runs import load
from scout_rl.watch import disk, find, watcher
from scout_rl.watch.terminal import draw
from scout_rl.watch.watcher import Watcher
from tests.report.planted import config, curve, write_compact
from tests.watch.client import Client
from tests.watch.planted import GrowingRun, campaign, damaged


def looked(*roots, spare=60.0):
    watching = Watcher(roots)
    watching.look(spare=spare)
    return watching


def row_of(watching, name):
    (row,) = [row.value for row in watching.rows.values() if row.value["name"] == name]
    return row


def test_the_row_of_a_run_that_trains(tmp_path):
    run = GrowingRun(tmp_path / "runs" / "a", setting="door", budget=100).play(45)
    watching = looked(tmp_path / "runs", spare=0.0)
    row = row_of(watching, "a")
    assert (row["setting"], row["rule"], row["label"], row["seed"]) == ("door", "ability", "ability", 40)
    assert (row["windows"], row["budget"], row["state"], row["kind"]) == (45, 100, "training", "folder")
    assert row["seconds_per_window"] == 0.5  # the median: evaluations and the first window take longer
    assert row["seconds_left"] == 55 * 0.5
    last = json.loads((run.folder / "evaluations.jsonl").read_text().splitlines()[-1])
    assert (row["evaluated_at"], row["groups"]) == (40, last["groups"])
    assert row["worst"] == {"group": "hard", "success": last["groups"]["hard"]}
    moves = [json.loads(line) for line in (run.folder / "events.jsonl").read_text().splitlines()]
    if moves[-1]["window"] >= 40:
        assert row["event"]["window"] == moves[-1]["window"]
        assert row["event"]["text"].startswith(f"Context {moves[-1]['context']} ")
    before = row["stamp"]
    run.play(1)
    watching.look()
    assert row_of(watching, "a")["windows"] == 46
    assert row_of(watching, "a")["stamp"] != before


def test_only_changed_rows_are_told(tmp_path):
    runs = [GrowingRun(tmp_path / name, seed=41 + i).play(5) for i, name in enumerate("abc")]
    watching = looked(tmp_path)
    seen = watching.number
    watching.look()
    assert watching.changes(seen) is None
    runs[1].play(1)
    watching.look()
    told = watching.changes(seen)
    assert [row["name"] for row in told["rows"]] == ["b"]
    assert told["gone"] == []


def test_states(tmp_path, monkeypatch):
    finished = GrowingRun(tmp_path / "finished", budget=40).play(40)
    GrowingRun(tmp_path / "loop", kind="log_dir", name="mine").play(3)
    begun = GrowingRun(tmp_path / "begun")
    (begun.folder / "config.json").unlink()  # the ladder is being built
    watching = looked(tmp_path)
    assert row_of(watching, "finished")["state"] == "finished"
    assert row_of(watching, "begun")["state"] == "starting"
    assert row_of(watching, "begun")["trouble"] == ""
    loop = row_of(watching, "loop")
    assert (loop["state"], loop["kind"], loop["label"], loop["budget"]) == ("training", "log_dir", "mine", None)
    assert loop["seconds_per_window"] >= 0
    later = time.time() + 3600
    monkeypatch.setattr(watcher.time, "time", lambda: later)
    watching.look()
    assert row_of(watching, "loop")["state"] == "stopped"
    assert row_of(watching, "finished")["state"] == "finished"
    shutil.rmtree(finished.folder)
    watching.look()
    row = row_of(watching, "finished")
    assert (row["state"], row["windows"]) == ("deleted", 40)
    assert row["trouble"] == f"{finished.folder} was deleted: what was read before is shown"
    seen = watching.number
    later += 2 * watcher.KEPT
    watching.look()
    key = row["id"]
    assert watching.changes(seen)["gone"] == [key]
    assert key not in watching.rows


def test_damage_is_named_in_the_row(tmp_path):
    damaged(tmp_path / "damaged")
    GrowingRun(tmp_path / "config").play(3)
    (tmp_path / "config" / "run.json").write_text("{")
    GrowingRun(tmp_path / "nested").play(3)
    (tmp_path / "nested" / "run.json").write_text("[" * 200_000)
    watching = looked(tmp_path)
    watching.look()
    for name, sentence in (
        ("damaged", "windows.jsonl is damaged at row 31"),
        ("config", "run.json is damaged"),
        ("nested", "run.json is damaged: it is nested too deeply"),
    ):
        row = row_of(watching, name)
        assert row["state"] == "damaged"
        assert sentence in row["trouble"]
    assert row_of(watching, "damaged")["windows"] == 60


@pytest.mark.parametrize("table", ["windows", "events", "evaluations", "timing"])
def test_a_table_that_is_damaged_in_its_last_row_is_told_once(tmp_path, table):
    path = GrowingRun(tmp_path / "run", rule=rules.Scout(n_min=1)).play(10).folder / f"{table}.jsonl"
    rows = len(path.read_text().splitlines())
    path.write_text(path.read_text() + "{\n")
    watching = looked(tmp_path, spare=0.0)
    assert row_of(watching, "run")["trouble"].startswith(f"{path} is damaged: ")
    watching.look(spare=60.0)
    trouble = row_of(watching, "run")["trouble"]
    assert trouble.startswith(f"{path} is damaged at row {rows + 1}: ")
    assert trouble.count(str(path)) == 1


def changed(path, change):
    """A JSON file with another content."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def one_row(path, **fields):
    """A table's first row alone, with other numbers."""
    path.write_text(json.dumps(json.loads(path.read_text().splitlines()[0]) | fields) + "\n")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda run: changed(run / "config.json", lambda c: c.update(n_contexts=0)), "n_contexts is 0"),
        (lambda run: changed(run / "run.json", lambda r: r["config"].update(levels=10**15)), "n_levels is 10{15}"),
        (
            lambda run: changed(run / "run.json", lambda r: r["config"].update(windows=10**400)),
            "'windows' has more than",
        ),
        (
            lambda run: changed(run / "run.json", lambda r: r["config"].update(checkpoint_every=10**19)),
            "'checkpoint_every' has more than 64 bits",
        ),
        (
            lambda run: changed(run / "run.json", lambda r: r["config"]["constants"].update(n_min=10**400)),
            "'n_min' has more than 64 bits",
        ),
        (
            lambda run: changed(run / "run.json", lambda r: r["groups"]["oracle"].__setitem__(0, 10**19)),
            "'oracle' has more than 64 bits",
        ),
        (lambda run: changed(run / "config.json", lambda c: c.pop("has_frontier")), "there is no 'has_frontier'"),
        (lambda run: one_row(run / "windows.jsonl", window=10**10), "its window is not in 0 to 2,147,483,646"),
        (lambda run: one_row(run / "windows.jsonl", window=10**19), "its window is not in 0 to 2,147,483,646"),
        (lambda run: one_row(run / "windows.jsonl", window=10**400), "its window is not in 0 to 2,147,483,646"),
        (lambda run: one_row(run / "events.jsonl", window=10**19), "its window is not in 0 to 2,147,483,646"),
        (lambda run: one_row(run / "events.jsonl", evidence=10**400), "int too large to convert to float"),
        (lambda run: one_row(run / "evaluations.jsonl", window=10**19), "its window is not in 0 to 2,147,483,646"),
        (lambda run: one_row(run / "timing.jsonl", seconds=1e308), "its seconds are no time"),
    ],
    ids=[
        *("no context", "many levels", "long budget", "rare checkpoints", "large gate"),
        *("large group", "no kind of rule", "late window", "later window", "latest window", "late move"),
        *("much evidence", "late evaluation", "long window"),
    ],
)
def test_one_folder_does_not_end_the_look_at_the_others(tmp_path, change, sentence):
    rule = rules.Scout(n_min=1)
    good, bad = (GrowingRun(tmp_path / name, rule=rule, seed=40 + i).play(10) for i, name in enumerate(("good", "bad")))
    change(bad.folder)
    watching = looked(tmp_path)
    good.play(1)
    for _ in range(3):
        watching.look(spare=60.0, again=0.0)
        row = row_of(watching, "bad")
        assert row["state"] == "damaged"
        assert row["trouble"].startswith(str(bad.folder))
        assert re.search(sentence, row["trouble"])
    assert (row_of(watching, "good")["windows"], row_of(watching, "good")["alerts_at"]) == (11, 11)
    assert row_of(watching, "good")["trouble"] == ""
    client = Client(tmp_path)
    parts = ("", "/heat", "/curves", "/shares", "/events", "/stuck", "/time", "/contexts/3")
    targets = [f"/api/runs/{client.id('bad')}{part}" for part in parts]
    for target in (*targets, f"/api/compare?run={client.id('good')}&run={client.id('bad')}"):
        status, _, body = client.ask(target)
        assert status == 200 or (status == 409 and str(bad.folder) in json.loads(body)["error"])
    for roots in ([tmp_path], [bad.folder]):
        Console(file=io.StringIO()).print(draw(looked(*roots)))
    shutil.rmtree(bad.folder)
    watching.look()
    assert row_of(watching, "bad")["state"] == "deleted"
    GrowingRun(bad.folder, seed=41).play(5)
    watching.look(spare=60.0, again=0.0)
    assert (row_of(watching, "bad")["windows"], row_of(watching, "bad")["trouble"]) == (5, "")


@pytest.mark.parametrize("where", ["look", "alerts", "compact"])
def test_a_mistake_of_ours_is_told_as_ours(tmp_path, monkeypatch, capsys, where):
    """In a row, or behind it: the others are shown, nothing is called damaged, and the traceback is printed once."""
    good = GrowingRun(tmp_path / "good").play(3)
    if where == "compact":
        write_compact(tmp_path / "bad", config(windows=120), {"all": curve(80, at=range(0, 121, 20))}, held_out=10)
        (tmp_path / "bad").rename(tmp_path / "bad.npz")
        bad = tmp_path / "bad.npz"
    else:
        bad = GrowingRun(tmp_path / "bad", seed=41).play(3).folder
    planted, name = (watcher.Row, "_clock") if where == "look" else (watcher, "alerts")
    sound = getattr(planted, name)

    def wrong(*of):
        path = of[0].place.path if where == "look" else Path(of[0].about.name)
        return len(3) if path == bad else sound(*of)

    monkeypatch.setattr(planted, name, wrong)
    watching = looked(tmp_path)
    good.play(1)
    for _ in range(3):
        watching.look(spare=60.0, again=0.0)
        row = row_of(watching, bad.name)
        error = "TypeError: object of type 'int' has no len()"
        assert row["trouble"] == f"scout watch failed on {bad}: {error}; please report it"
        assert row["state"] == {"look": "starting", "alerts": "training", "compact": "finished"}[where]
    assert (row_of(watching, "good")["windows"], row_of(watching, "good")["alerts_at"]) == (4, 4)
    printed = capsys.readouterr().err
    assert printed.count("Traceback") == printed.count(error) == 1
    assert "in wrong" in printed
    monkeypatch.undo()
    watching._judged.clear()
    watching.look(spare=60.0, again=0.0)
    assert row_of(watching, bad.name)["trouble"] == ""


def test_a_run_that_is_too_large_for_the_page(tmp_path):
    """Its row is shown, and it is not called damaged; `scout report` reads it."""
    size = {"n_contexts": 1_000_000, "n_levels": 11, "window": 16}
    curriculum = Curriculum(rules.Random(), **size, log_dir=tmp_path / "large", seed=1)
    curriculum.report(curriculum.assign(16), np.ones(16, bool))
    GrowingRun(tmp_path / "small").play(1)
    watching = looked(tmp_path)
    row = row_of(watching, "large")
    assert (row["state"], row["windows"], row["contexts"], row["levels"]) == ("training", 1, 1_000_000, 11)
    assert row["trouble"] == (
        f"{tmp_path / 'large'} has 1,000,000 contexts x 11 levels; "
        "the page shows at most 10,000,000 cells (scout report shows any)"
    )
    with pytest.raises(Refusal, match="has 1,000,000 contexts x 11 levels"):
        watching.about(row["id"])
    assert load(tmp_path / "large").about.n_contexts == 1_000_000
    shutil.rmtree(tmp_path / "large")
    Curriculum(rules.Random(), 4, 3, log_dir=tmp_path / "large", seed=1)
    watching.look(spare=60.0, again=0.0)
    assert (row_of(watching, "large")["contexts"], row_of(watching, "large")["trouble"]) == (4, "")


def test_roots_inside_each_other(tmp_path):
    GrowingRun(tmp_path / "runs" / "mine").play(1)
    for roots in (("runs", "runs/mine"), ("runs/mine", "runs"), ("runs", "runs")):
        watching = looked(*(tmp_path / root for root in roots))
        assert (len(watching.rows), watching.troubles) == (1, [])


def test_runs_are_found_and_other_folders_are_not(tmp_path):
    GrowingRun(tmp_path / "deep" / "er" / "run").play(1)
    GrowingRun(tmp_path / "deep" / "loop", kind="log_dir")
    shutil.copytree(tmp_path / "deep" / "loop", tmp_path / "deep" / "er" / "run" / "checkpoints" / "copy")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"hidden_size": 768}')
    (tmp_path / ".hidden" / "x").mkdir(parents=True)
    shutil.copytree(tmp_path / "deep" / "er" / "run", tmp_path / ".hidden" / "x" / "run")
    outside = GrowingRun(tmp_path.parent / f"{tmp_path.name}-outside").play(1)
    (tmp_path / "link").symlink_to(outside.folder)
    watching = looked(tmp_path)
    assert sorted(row.value["name"] for row in watching.rows.values()) == ["deep/er/run", "deep/loop"]
    assert looked(tmp_path / "link").rows  # a link that the user names is followed
    assert looked(tmp_path / "model", tmp_path / "nothing").troubles == [
        f"{tmp_path / 'model'} holds no run yet",
        f"{tmp_path / 'nothing'} does not exist",
    ]
    GrowingRun(tmp_path / "later").play(1)
    watching._searched = float("-inf")
    watching.look()
    assert row_of(watching, "later")["windows"] == 1


def test_a_search_ends(tmp_path, monkeypatch):
    for i in range(30):
        (tmp_path / f"{i}").mkdir()
    monkeypatch.setattr(find, "MOST_FOLDERS", 10)
    sentence = "only the first 10 folders were searched: name the runs' own folder"
    assert looked(tmp_path).troubles == [sentence]
    GrowingRun(tmp_path / "29" / "run").play(1)
    assert looked(tmp_path, tmp_path / "29").troubles == [sentence]


def test_compact_records_are_shown_too(tmp_path):
    at = range(0, 121, 20)
    write_compact(tmp_path / "r.npz", config(windows=120), {"all": curve(80, at=at)}, held_out=10)
    (tmp_path / "other.npz").write_bytes(b"no archive")
    watching = looked(tmp_path)
    (row,) = [row.value for row in watching.rows.values()]
    assert (row["name"], row["kind"], row["state"], row["windows"]) == ("r.npz", "compact", "finished", 120)
    assert row["worst"] == {"group": "all", "success": 1.0}
    assert watching.heat(row["id"], 240, 0)["columns"] == 120
    assert watching.shares(row["id"], 64)["teaching"]["complete"]
    assert watching.time_spent(row["id"], 64)["source"] in ("", "file times")


def test_alerts_are_read_in_the_spare_time_and_stay_current(tmp_path):
    run = GrowingRun(tmp_path / "bad", rule=rules.Scout(n_min=5)).play(120, lambda cells, w: np.zeros(16, bool))
    watching = Watcher([tmp_path])
    watching.look(spare=0.0)
    row = row_of(watching, "bad")
    assert (row["alerts"], row["alerts_at"]) == ([], None)
    watching.look(spare=5.0)
    row = row_of(watching, "bad")
    assert [alert["kind"] for alert in row["alerts"]] == ["hopeless at the easiest"]
    assert row["alerts_at"] == 120
    run.play(60, lambda cells, w: np.ones(16, bool))
    watching.look(spare=5.0, again=3600.0)
    assert row_of(watching, "bad")["alerts_at"] == 120  # a growing run is read again after some seconds
    watching.look(spare=5.0, again=0.0)
    row = row_of(watching, "bad")
    assert (row["alerts"], row["alerts_at"]) == ([], 180)


def test_memory_is_bounded_and_a_dropped_run_is_read_again(tmp_path):
    runs = [GrowingRun(tmp_path / str(i), seed=40 + i, n_contexts=200).play(40) for i in range(6)]
    one = looked(runs[0].folder).memory
    watching = Watcher([tmp_path], memory=2 * one)
    watching.look(spare=60.0)
    keys = list(watching.rows)
    for key in keys * 2:
        watching.heat(key, 64, 0)
        watching.shares(key, 64)
        assert watching.memory <= 2 * one
    assert len(watching._opened) == len(watching._replays) == 2
    assert {watching.heat(key, 64, 0)["windows"] for key in keys} == {40}


def test_the_generation_of_a_map(tmp_path):
    """It is another one after a cut, and after the run was dropped from memory: it may have been cut meanwhile."""
    run = GrowingRun(tmp_path / "run", kind="log_dir").play(20)
    saved = run.curriculum.state_dict()
    run.play(20)
    watching = looked(tmp_path)
    (key,) = watching.rows
    first = watching.heat(key, 240, 0)["generation"]
    run.play(1)
    assert watching.heat(key, 240, 40)["generation"] == first
    run.curriculum.load_state_dict(saved)
    run.play(30)
    second = watching.heat(key, 240, 41)["generation"]
    watching._close(key)
    assert len({first, second, watching.heat(key, 240, 50)["generation"]}) == 3


def test_the_memory_of_a_compact_record(tmp_path):
    """The frontier and the evaluations count too."""
    groups = {name: curve(80, at=range(0, 121, 20)) for name in ("easy", "hard")}
    frontier = np.repeat(4 - np.arange(120)[:, None] // 30, 200, axis=1)
    write_compact(tmp_path / "r.npz", config(windows=120), groups, held_out=10, frontier=frontier, n_contexts=200)
    run = watcher.PackedRun(tmp_path.resolve() / "r.npz")
    record = run.record()
    arrays = [record.frontier, *record.rollouts, *record.moves, record.held_out, *record.held_out_groups.values()]
    arrays += [record.evaluated_at, record.steps_at, record.seconds_at]
    assert record.frontier.nbytes == 120 * 200
    assert run.nbytes >= sum(array.nbytes for array in arrays)


def test_a_list_of_failures_that_is_deleted_meanwhile(tmp_path, monkeypatch):
    campaign(tmp_path / "runs", windows=1)

    def read(path):
        Path(path).unlink()
        return disk.read_small(path)

    monkeypatch.setattr(find, "read_small", read)
    assert find.failures(tmp_path / "runs") == ({}, [])


def test_a_damaged_run_of_a_campaign(tmp_path):
    campaign(tmp_path / "runs", windows=20)
    damaged(tmp_path / "runs/planted/scout/42")
    watching = looked(tmp_path)
    watching.look()
    (line,) = watching.overview()["campaigns"]
    (cell,) = [cell for cell in watching.campaign(line["id"])["cells"] if cell["seed"] == "42"]
    assert (cell["state"], cell["times"]) == ("damaged", 0)
    assert "windows.jsonl is damaged at row 31" in cell["error"]


def test_a_campaigns_table(tmp_path):
    campaign(tmp_path / "runs")
    (tmp_path / "runs/.campaign/planted/scout/42.failures.json").write_text('[{"error": 3}]')
    watching = looked(tmp_path)
    (line,) = watching.overview()["campaigns"]
    assert (line["name"], line["runs"], line["failed"]) == ("runs", 4, 1)
    table = watching.campaign(line["id"])
    cells = {(cell["rule"], cell["seed"]): cell for cell in table["cells"]}
    assert cells["ability", "41"]["state"] == "failed"
    assert (cells["ability", "41"]["times"], cells["ability", "41"]["error"]) == (3, "failure 3: out of memory")
    assert (cells["scout", "41"]["state"], cells["scout", "41"]["id"]) == ("waiting", None)
    assert cells["ability", "40"]["state"] == "training"
    assert table["counts"] == {"training": 2, "failed": 1, "waiting": 1}
    assert "42.failures.json is damaged" in table["troubles"][0]


@pytest.mark.parametrize("content", ["[{}]", '[{"windows": 3}]', '[{"error": "full"}, {}]'])
def test_a_failure_without_its_error(tmp_path, content):
    campaign(tmp_path / "runs", windows=1)
    path = tmp_path / "runs/.campaign/planted/scout/41.failures.json"
    path.write_text(content)
    watching = looked(tmp_path)
    (line,) = watching.overview()["campaigns"]
    assert watching.campaign(line["id"])["troubles"] == [f"{path} is damaged: there is no 'error'"]


def test_runs_are_compared_seed_by_seed(tmp_path):
    at, rng = np.arange(0, 121, 20), range(0, 121, 20)
    for rule, seed, reach in (("ability", 40, 40), ("scout", 40, 80), ("ability", 41, 60), ("scout", 41, 120)):
        name = tmp_path / f"{rule}-{seed}.npz"
        groups = {"easy": curve(reach, at=rng), "hard": curve(reach, at=rng, final=0.5)}
        write_compact(name, config(rule=rule, seed=seed, windows=120), groups, held_out=200)
    watching = looked(tmp_path)
    by_name = {row.value["name"].removesuffix(".npz"): key for key, row in watching.rows.items()}
    told = watching.compare([by_name[name] for name in ("ability-40", "scout-40", "ability-41", "scout-41")])
    assert told["common"] == [0, 120]
    expected = {r: auc(at, curve(r, at=rng, final=0.5), (0, 120)) for r in (40, 60, 80, 120)}
    (pair, other) = told["pairs"]
    assert (pair["seed"], other["seed"]) == (40, 41)
    assert [run["worst_auc"] for run in pair["runs"]] == pytest.approx([expected[40], expected[80]], abs=0.02)
    (difference,) = told["differences"]
    assert (difference["a"], difference["b"], difference["seeds"]) == ("ability", "scout", [40, 41])
    values = [expected[40] - expected[80], expected[60] - expected[120]]
    assert difference["worst_auc"] == pytest.approx(values, abs=0.02)
    assert difference["median"] == pytest.approx(np.median(values), abs=0.02)
