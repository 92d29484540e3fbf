"""What the page gets, compared with the records and worked by hand."""

import base64
import zlib

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.report.measure.stuck import find_stuck
from scout_rl.report.read.runs import load
from scout_rl.watch.views import Columns
from tests.watch.client import Client
from tests.watch.planted import GrowingRun


def unpacked(answer):
    """The arrays of a heat map, as the page's script reads them."""
    raw, arrays, at = zlib.decompress(base64.b64decode(answer["data"])), {}, 0
    for name, size, length in answer["layout"]:
        arrays[name] = np.frombuffer(raw, f"<u{size}", length, at)
        at += size * length
    assert at == len(raw)
    return arrays


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    GrowingRun(folder / "ability").play(100)
    GrowingRun(folder / "scout", rule=rules.Scout(n_min=5), seed=41).play(100)
    GrowingRun(folder / "random", rule=rules.Random(), seed=42).play(100)
    GrowingRun(folder / "loop", kind="log_dir", seed=43).play(30)
    GrowingRun(folder / "empty", seed=44)
    return Client(folder)


@pytest.mark.parametrize("name", ["ability", "scout", "random", "loop"])
@pytest.mark.parametrize("columns", [16, 240])
def test_the_heat_map(client, name, columns):
    run = load(client.watcher.rows[client.id(name)].place.path)
    answer = client.run(name, "/heat", f"?columns={columns}")
    windows, n = run.about.windows, 20
    width = answer["width"]
    assert width == (1 if columns == 240 else 8 if windows == 100 else 2)
    assert answer["columns"] == -(-windows // width) <= columns
    arrays = unpacked(answer)
    shape = answer["columns"], n
    tried, won, total = (np.zeros(shape) for _ in range(3))
    for w, x, level, success in zip(*run.rollouts, strict=True):
        tried[w // width, x] += 1
        won[w // width, x] += success
        total[w // width, x] += level
    np.testing.assert_array_equal(arrays["tried"].reshape(shape), tried)
    np.testing.assert_array_equal(arrays["won"].reshape(shape), won)
    with np.errstate(invalid="ignore"):
        mean = np.where(tried > 0, np.rint(total / tried * 200 / 4), 255)
    np.testing.assert_array_equal(arrays["mean"].reshape(shape), mean)
    if run.frontier is None:
        assert "frontier" not in arrays
        last = {x: (w, level) for w, x, level, _ in zip(*run.rollouts, strict=True)}
        assert [(last[x][0] + 1, last[x][1]) for x in range(n)] == list(
            zip(arrays["moved"].tolist(), arrays["now"].tolist(), strict=True)
        )
    else:
        ends = [min((c + 1) * width, windows) - 1 for c in range(answer["columns"])]
        np.testing.assert_array_equal(arrays["frontier"].reshape(shape), run.frontier[ends])
        np.testing.assert_array_equal(arrays["now"], run.frontier[-1])
        last = {x: w + 1 for w, x in zip(run.moves.window, run.moves.context, strict=True)}
        assert arrays["moved"].tolist() == [last.get(x, 0) for x in range(n)]
    assert ("group" in arrays) == (name != "loop")


def test_a_column_with_hundreds_of_rollouts_per_context(tmp_path):
    run = GrowingRun(tmp_path / "run", n_contexts=8, episodes=16).play(1)
    run.episodes = 4096
    run.play(2)
    client, records = Client(tmp_path), load(run.folder)
    arrays = unpacked(client.run("run", "/heat"))
    for window in range(3):
        mine = records.rollouts.window == window
        context, success = records.rollouts.context[mine], records.rollouts.success[mine]
        tried, won = np.bincount(context, minlength=8), np.bincount(context, weights=success, minlength=8)
        np.testing.assert_array_equal(arrays["tried"].reshape(3, 8)[window], tried)
        np.testing.assert_array_equal(arrays["won"].reshape(3, 8)[window], won)
    assert arrays["tried"].max() > 255


def test_only_new_columns_of_the_heat_map(client):
    whole, part = (client.run("ability", "/heat", f"?columns=64&since={w}") for w in (0, 93))
    assert (whole["width"], whole["columns"], part["column"], part["columns"]) == (2, 50, 46, 4)
    a, b = unpacked(whole), unpacked(part)
    np.testing.assert_array_equal(a["frontier"][-80:], b["frontier"])
    np.testing.assert_array_equal(a["tried"][-80:], b["tried"])
    assert client.run("ability", "/heat", "?since=100")["columns"] == 0


def test_columns_stay_while_a_run_grows(client):
    run = load(client.watcher.rows[client.id("ability")].place.path)
    for most in (16, 33, 100):
        columns = Columns.of(run, most)
        assert columns.width & (columns.width - 1) == 0
        assert columns.number <= most
        assert columns.at[-1] == 100


def test_curves(client):
    run = load(client.watcher.rows[client.id("ability")].place.path)
    answer = client.run("ability", "/curves", "?columns=16")
    held_out, training = answer["held_out"], answer["training"]
    assert held_out["at"] == [0, 20, 40, 60, 80, 100]
    assert held_out["groups"]["hard"] == pytest.approx(run.held_out_groups["hard"].tolist())
    assert held_out["worst"] == [min(pair) for pair in zip(*held_out["groups"].values(), strict=True)]
    assert answer["worst_group"] == "hard"
    assert training["at"][0] == 8
    chosen = {
        "all": (training["all"], run.rollouts.level >= 0),
        "hard": (training["groups"]["hard"], run.rollouts.context >= 10),
        "target": (training["target"], run.rollouts.level == 0),
    }
    most = {}
    for name, (values, which) in chosen.items():
        sizes = []
        for i, value in enumerate(values):
            counted = which & (run.rollouts.window // 8 == i)
            assert (value is None) == (not counted.any())
            before = i
            while value is not None and counted.sum() < 64 and before > 0:
                before -= 1
                counted |= which & (run.rollouts.window // 8 == before)
            assert value is None or value == pytest.approx(run.rollouts.success[counted].mean(), abs=1e-4)
            sizes.append(i - before)
        most[name] = max(sizes)
    assert most["all"] == 0, "16 rollouts per window, 8 windows per column"
    assert most["target"] > 0


def test_shares(client):
    run = load(client.watcher.rows[client.id("random")].place.path)
    answer = client.run("random", "/shares", "?columns=16")
    column = run.rollouts.level[run.rollouts.window < 8]
    expected = np.bincount(column, minlength=5) / len(column)
    assert answer["levels"][0] == pytest.approx(expected.tolist(), abs=1e-4)
    teaching = answer["teaching"]
    assert teaching["complete"]
    assert teaching["source"] == "discounted rate of each cell's outcomes"
    assert len(teaching["at"]) == len(teaching["too_hard"]) == len(teaching["rollouts"]) == 13
    assert client.run("ability", "/shares")["teaching"]["source"] == "the rule's model"


def test_events_newest_first(client):
    path = client.watcher.rows[client.id("scout")].place.path
    run = load(path)
    answer = client.run("scout", "/events", "?limit=10000")
    assert answer["total"] == len(answer["events"]) == len(run.moves.window) + 6
    order = [(e["window"], e["kind"] != "evaluation") for e in answer["events"]]
    assert order == sorted(order, reverse=True)
    moves = [e for e in answer["events"] if e["kind"] != "evaluation"][::-1]
    assert [e["context"] for e in moves] == run.moves.context.tolist()
    assert answer["events"][-1]["text"] == "Held-out success after 0 windows: easy 0.00, hard 0.00."
    page = client.run("scout", "/events", "?limit=5&skip=3")
    assert page["events"] == answer["events"][3:8]
    mine = client.run("scout", "/events", "?context=3&limit=10000")["events"]
    assert mine == [e for e in answer["events"] if e.get("context") == 3]


def test_stuck_contexts(client):
    run = load(client.watcher.rows[client.id("scout")].place.path)
    answer = client.run("scout", "/stuck")
    found = {entry.context: entry for entry in find_stuck(run)}
    assert answer["total"] == len(found) == sum(answer["by_reason"].values())
    assert {entry["context"]: entry["evidence"] for entry in answer["contexts"]} == {
        x: entry.evidence for x, entry in found.items()
    }
    assert all(entry["waits"] and entry["meaning"] for entry in answer["contexts"])
    assert len(client.run("scout", "/stuck", "?limit=1")["contexts"]) == min(1, len(found))


def test_where_the_time_goes(client):
    """0.5 s per window, 1 s more with an evaluation (5 in 100), 5 s more at the start; nothing for checkpoints."""
    answer = client.run("ability", "/time")
    parts = {part["name"]: part["seconds"] for part in answer["parts"]}
    assert parts == pytest.approx({"windows": 50.0, "evaluations": 5.0, "checkpoints": 0.0, "start and pauses": 5.0})
    assert (answer["seconds"], answer["seconds_per_window"], answer["source"]) == (60.0, 0.5, "timing.jsonl")
    assert answer["rollouts_per_second"] == 32.0
    assert answer["steps_per_second"] == pytest.approx(49 * 1600 / (49 * 0.5 + 3), rel=0.01)
    assert client.run("loop", "/time")["source"] == "file times"


def test_one_context(client):
    run = load(client.watcher.rows[client.id("ability")].place.path)
    answer = client.run("ability", "/contexts/3")
    mine = run.rollouts.context == 3
    assert answer["outcomes"]["window"] == run.rollouts.window[mine].tolist()
    assert answer["outcomes"]["success"] == run.rollouts.success[mine].astype(int).tolist()
    assert answer["outcomes"]["total"] == mine.sum()
    for row in answer["by_level"]:
        at = mine & (run.rollouts.level == row["level"])
        assert (row["tried"], row["won"]) == (at.sum(), run.rollouts.success[at].sum())
        assert 0 <= row["low"] <= row["chance"] <= row["high"] <= 1
    assert answer["group"] == "easy"
    assert answer["frontier"][-1] == answer["level"] == run.frontier[-1, 3]
    assert answer["chance_complete"]
    assert all(event["context"] == 3 for event in answer["events"])


def test_a_run_before_its_first_window(client):
    for part in ("", "/heat", "/curves", "/shares", "/events", "/stuck", "/time", "/contexts/0"):
        client.run("empty", part)
    assert client.run("empty", "/heat")["columns"] == 0
    assert client.run("empty", "/contexts/0")["level"] is None
    assert client.run("empty", "/curves")["held_out"]["at"] == [0]
