"""The records of anyone's loop: complete, append-only, repaired after a crash, continued after a restore."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scout_rl.records.tables import EVENTS, FRONTIER, WINDOWS, read_records
from tests.curriculum.test_curriculum import make, play


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("key", ["scout", "group-frontier", "random", "plr"])
def test_the_records_tell_the_whole_story(key, tmp_path):
    curriculum = make(key, log_dir=tmp_path)
    frontiers, cells = [], []
    learner = np.random.default_rng(0)
    for _ in range(50):
        cells += play(curriculum, 1, learner)
        frontiers.append(curriculum.frontier)
    records = read_records(tmp_path)
    assert [row["window"] for row in records.windows] == list(range(50))
    assert [(row["context"], row["level"]) for row in records.windows] == cells
    assert all(set(row["success"]) <= {0, 1} for row in records.windows)
    assert all(len(row["signal"]) == 16 for row in records.windows)
    assert records.events == list(curriculum.events)
    assert records.config["rule"] == {"key": key, **curriculum.rule.constants()}
    assert records.config["versions"]["numpy"] == np.__version__
    if curriculum.frontier is None:
        assert records.frontier is None
    else:
        assert np.array_equal(records.frontier, np.stack(frontiers))
        assert len(records.events) > 5


def test_frontiers_follow_from_the_events(tmp_path):
    curriculum = make(log_dir=tmp_path)
    play(curriculum, 80, np.random.default_rng(0))
    records = read_records(tmp_path)
    level = np.full(12, 4)
    for window, row in enumerate(records.frontier):
        for event in records.events:
            if event.window == window:
                assert level[event.context] == event.from_level
                level[event.context] = event.to_level
        assert np.array_equal(row, level)


@pytest.mark.parametrize("restored_at", [1, 17, 30])
def test_restored_it_writes_the_same_records(tmp_path, restored_at):
    straight = make(log_dir=tmp_path / "a")
    play(straight, restored_at, np.random.default_rng(0))
    state = straight.state_dict()
    play(straight, 40 - restored_at, np.random.default_rng(1))

    died = make(log_dir=tmp_path / "b")
    play(died, restored_at, np.random.default_rng(0))
    play(died, 20, np.random.default_rng(2))  # windows that the checkpoint does not know
    again = make(log_dir=tmp_path / "b")
    again.load_state_dict(state)
    play(again, 40 - restored_at, np.random.default_rng(1))
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_a_restore_to_the_very_start_empties_the_records(tmp_path):
    start = make().state_dict()
    curriculum = make(log_dir=tmp_path)
    play(curriculum, 10, np.random.default_rng(0))
    curriculum.load_state_dict(start)
    assert read_records(tmp_path).windows == []
    play(curriculum, 2, np.random.default_rng(0))
    assert len(read_records(tmp_path).windows) == 2


def test_a_restored_curriculum_may_start_a_new_folder(tmp_path):
    first = make()
    play(first, 10, np.random.default_rng(0))
    second = make(log_dir=tmp_path)
    second.load_state_dict(first.state_dict())
    play(second, 3, np.random.default_rng(0))
    records = read_records(tmp_path)
    assert [row["window"] for row in records.windows] == [10, 11, 12]
    assert records.frontier.shape == (3, 12)


@pytest.mark.parametrize("torn", [WINDOWS, EVENTS, FRONTIER])
def test_what_a_crash_left_is_cut_off(tmp_path, torn):
    curriculum = make(log_dir=tmp_path)
    play(curriculum, 30, np.random.default_rng(0))
    state = curriculum.state_dict()
    whole = files(tmp_path)
    with (tmp_path / torn).open("ab") as file:  # half a row of window 30
        file.write(b'{"window":30,"con' if torn != FRONTIER else b"\x01\x02")
    assert len(read_records(tmp_path).windows) == 30
    assert read_records(tmp_path).frontier.shape == (30, 12)
    again = make(log_dir=tmp_path)
    again.load_state_dict(state)
    assert files(tmp_path) == whole


def test_events_of_a_window_whose_row_is_missing_are_not_read(tmp_path):
    curriculum = make(log_dir=tmp_path)
    play(curriculum, 40, np.random.default_rng(0))
    last = read_records(tmp_path).events[-1].window
    lines = (tmp_path / WINDOWS).read_bytes().splitlines(keepends=True)
    (tmp_path / WINDOWS).write_bytes(b"".join(lines[:last]))
    assert all(event.window < last for event in read_records(tmp_path).events)


def test_records_are_never_written_twice(tmp_path):
    first = make(log_dir=tmp_path)
    play(first, 10, np.random.default_rng(0))
    before = files(tmp_path)
    fresh = make(log_dir=tmp_path)
    with pytest.raises(ValueError, match="already holds windows up to 9; continue them with load_state_dict"):
        play(fresh, 1, np.random.default_rng(0))
    assert fresh.windows == 0
    assert files(tmp_path) == before


def test_a_gap_is_refused(tmp_path):
    first = make(log_dir=tmp_path)
    play(first, 5, np.random.default_rng(0))
    later = make()
    play(later, 9, np.random.default_rng(0))
    other = make(log_dir=tmp_path)
    with pytest.raises(ValueError, match="stops at window 4, but the curriculum is at 9"):
        other.load_state_dict(later.state_dict())
    assert other.windows == 0


def test_another_curriculums_folder_is_refused(tmp_path):
    make(log_dir=tmp_path)
    with pytest.raises(ValueError, match="n_contexts is 12 there and 13 here"):
        make(n_contexts=13, log_dir=tmp_path)
    with pytest.raises(ValueError, match="rule is"):
        make("beta", log_dir=tmp_path)


def test_a_folder_that_is_taken_is_refused_before_anything_is_played(tmp_path):
    play(make(log_dir=tmp_path), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="already holds windows up to 2"):
        make(log_dir=tmp_path).assign(16)


def test_two_writers_of_one_folder(tmp_path):
    """A double start, or two ranks: the second one to write is stopped, and the records stay those of the first."""
    first, second = make(log_dir=tmp_path), make(log_dir=tmp_path)
    play(first, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="written by another curriculum too"):
        play(second, 1, np.random.default_rng(0))
    play(first, 2, np.random.default_rng(0))
    assert [row["window"] for row in read_records(tmp_path).windows] == [0, 1, 2]


def test_a_checkpoint_of_another_run_cuts_nothing(tmp_path):
    ours, theirs = make(log_dir=tmp_path / "ours"), make()
    play(ours, 6, np.random.default_rng(0))
    play(theirs, 3, np.random.default_rng(5))
    before = (tmp_path / "ours" / "windows.jsonl").read_bytes()
    again = make(log_dir=tmp_path / "ours")
    with pytest.raises(ValueError, match="records of another run"):
        again.load_state_dict(theirs.state_dict())
    assert (tmp_path / "ours" / "windows.jsonl").read_bytes() == before
    old = {name: value for name, value in theirs.state_dict().items() if name != "digest"}
    again.load_state_dict(old)  # from before there was one: as it was then
    assert len(read_records(tmp_path / "ours").windows) == 3


def test_records_that_two_runs_wrote_are_not_read(tmp_path):
    play(make(log_dir=tmp_path), 3, np.random.default_rng(0))
    lines = (tmp_path / "windows.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "windows.jsonl").write_text("".join(line for line in lines for _ in range(2)))
    with pytest.raises(ValueError, match=r"windows\.jsonl has window 0 after 0: two runs"):
        read_records(tmp_path)


@pytest.mark.parametrize("kept", [None, 0, 17])
def test_a_frontier_file_that_was_cut(tmp_path, kept):
    play(make(log_dir=tmp_path), 3, np.random.default_rng(0))
    path = tmp_path / "frontier.int8"
    path.unlink() if kept is None else path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"frontier.int8 holds [01] windows, and windows.jsonl 3"):
        read_records(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        make(log_dir=tmp_path / "file" / "run")


def test_a_folder_without_records(tmp_path):
    with pytest.raises(ValueError, match=r"holds no records: there is no config\.json"):
        read_records(tmp_path)


def test_records_of_another_schema(tmp_path):
    make(log_dir=tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "schema": 9}))
    with pytest.raises(ValueError, match="schema 9, this version reads 1"):
        read_records(tmp_path)


CHILD = """
import sys, time
import numpy as np
from pathlib import Path
from tests.curriculum.test_curriculum import make, chance

folder = Path(sys.argv[1])
curriculum = make(log_dir=folder / "log")
if not (folder / "c.npz").exists():
    curriculum.save(folder / "c.npz")  # so that there is something to go back to from the first window on
curriculum.load(folder / "c.npz")
last = curriculum.windows + int(sys.argv[2])
while curriculum.windows < 400:
    while curriculum.windows == last:
        time.sleep(1)  # until it is killed
    cells = curriculum.assign(16)
    learner = np.random.default_rng([7, curriculum.windows])
    curriculum.report(cells, learner.random(16) < chance(cells, curriculum.windows), learner.random(16))
    if curriculum.windows % 10 == 0:
        curriculum.save(folder / "c.npz")
"""


def test_killed_at_any_moment_it_ends_with_the_same_records(tmp_path):
    def start(folder, most=1000):
        return subprocess.Popen([sys.executable, "-c", CHILD, str(folder), str(most)])

    (tmp_path / "straight").mkdir()
    (tmp_path / "killed").mkdir()
    assert start(tmp_path / "straight").wait(200) == 0
    rng = np.random.default_rng(0)
    rows = tmp_path / "killed" / "log" / WINDOWS
    for _ in range(5):
        size = rows.stat().st_size if rows.exists() else 0
        child = start(tmp_path / "killed", 60)  # more windows than it gets to, so that it never ends by itself
        while not (rows.exists() and rows.stat().st_size > size):  # until it writes, then a random moment
            assert child.poll() is None
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert start(tmp_path / "killed").wait(200) == 0
    assert files(tmp_path / "killed" / "log") == files(tmp_path / "straight" / "log")


@pytest.mark.parametrize(("name", "kept"), [(WINDOWS, 0), (WINDOWS, 40), (FRONTIER, 0), (FRONTIER, 29)])
def test_lost_rows_are_not_written_over(tmp_path, name, kept):
    """A state of window 30 in a folder of which a power cut took rows: refused, and what is left stays."""
    curriculum = make(log_dir=tmp_path)
    play(curriculum, 30, np.random.default_rng(0))
    state = curriculum.state_dict()
    play(curriculum, 20, np.random.default_rng(0))
    cut = (tmp_path / name).read_bytes()
    cut = cut[: kept * 12] if name == FRONTIER else b"".join(cut.splitlines(keepends=True)[:kept])
    (tmp_path / name).write_bytes(cut)
    before = files(tmp_path)
    again = make(log_dir=tmp_path)
    if kept == 40:  # the state's own windows are all there
        again.load_state_dict(state)
        assert read_records(tmp_path).frontier.shape == (30, 12)
        return
    with pytest.raises(ValueError, match=r"has lost records: frontier.int8 holds \d+ windows, and windows.jsonl \d+;"):
        again.load_state_dict(state)
    with pytest.raises(ValueError, match=r"has lost records|already holds"):
        make(log_dir=tmp_path).assign(16)
    assert files(tmp_path) == before
