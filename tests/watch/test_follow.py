"""The reader of a run folder: what it read is what the report reads, whatever happens to the files meanwhile."""

import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl import Curriculum, rules
from scout_rl.files.refusal import Refusal
from scout_rl.records.tables import JsonLines
from scout_rl.report.read.runs import load
from scout_rl.watch import disk, follow
from scout_rl.watch.follow import FollowedFile, FollowedRun
from tests.watch.planted import GrowingRun, damaged


def assert_same(read, folder):
    """Everything that the report reads too."""
    ours, theirs = read.record(), load(folder)
    for name in ("rollouts", "moves"):
        for mine, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            np.testing.assert_array_equal(mine, other)
    for name in ("frontier", "evaluated_at", "held_out", "steps_at", "context_group", "oracle_group"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_allclose(ours.seconds_at, theirs.seconds_at)
    assert ours.groups == theirs.groups
    assert ours.about.windows == theirs.about.windows
    assert ours.about.first == theirs.about.first
    for name, curve in theirs.held_out_groups.items():
        np.testing.assert_array_equal(ours.held_out_groups[name], curve)


@pytest.mark.parametrize("kind", ["folder", "log_dir"])
@pytest.mark.parametrize("rule", [rules.Ability(), rules.Scout(n_min=5), rules.Random()], ids=lambda rule: rule.key)
def test_a_growing_run_is_read_as_the_report_reads_it(tmp_path, kind, rule):
    run = GrowingRun(tmp_path / "run", kind=kind, rule=rule)
    read = FollowedRun(run.folder)
    begun = read.generation
    for windows in (0, 1, 7, 40):
        run.play(windows)
        read.advance()
        assert read.trouble == ""
        assert_same(read, run.folder)
    assert read.generation == begun


def test_what_was_read_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "GUARD", 64)
    run = GrowingRun(tmp_path / "run").play(50)
    read = FollowedRun(run.folder)
    read.advance()
    row, spans = len((run.folder / "windows.jsonl").read_bytes().splitlines(keepends=True)[-1]), []
    monkeypatch.setattr(follow, "read_span", lambda f, a, n: spans.append((a, n)) or disk.read_span(f, a, n))
    size = (run.folder / "windows.jsonl").stat().st_size
    run.play(1)
    read.advance()
    new = (run.folder / "windows.jsonl").stat().st_size - size
    assert (size, new) in spans
    assert sum(n for _, n in spans) < new + 6 * max(follow.GUARD, row) + 1000  # and the other tables' new rows
    assert_same(read, run.folder)


def test_a_row_that_is_being_written_waits(tmp_path):
    run = GrowingRun(tmp_path / "run").play(10)
    row = (
        (run.folder / "windows.jsonl").read_bytes().splitlines(keepends=True)[-1].replace(b'"window":9', b'"window":10')
    )
    read = FollowedRun(run.folder)
    read.advance()
    with (run.folder / "frontier.int8").open("ab") as file:
        file.write(bytes(20))
    for part in (row[:20], row[20:-1]):
        with (run.folder / "windows.jsonl").open("ab") as file:
            file.write(part)
        read.advance()
        assert read.record().about.windows == 10
        assert read.trouble == ""
    with (run.folder / "windows.jsonl").open("ab") as file:
        file.write(b"\n")
    read.advance()
    assert read.record().about.windows == 11


def test_a_resumed_run_that_is_cut_back_and_plays_on_otherwise(tmp_path):
    """Also when the file is longer again at the next look."""
    first = Curriculum(rules.Ability(), 10, 5, log_dir=tmp_path, seed=1)
    rng = np.random.default_rng(0)

    def play(curriculum, windows):
        for _ in range(windows):
            cells = curriculum.assign(16)
            curriculum.report(cells, rng.random(16) < 0.5)

    play(first, 20)
    saved = first.state_dict()
    play(first, 20)
    read = FollowedRun(tmp_path)
    begun = read.generation
    read.advance()
    assert read.record().about.windows == 40
    first.load_state_dict(saved)
    read.advance()
    assert read.record().about.windows == 20
    assert read.generation == begun + 1
    play(first, 30)
    read.advance()
    assert_same(read, tmp_path)
    first.load_state_dict(saved)
    play(first, 45)  # longer than before, with other outcomes
    read.advance()
    assert read.generation == begun + 2
    assert_same(read, tmp_path)


@pytest.mark.parametrize("where", ["the last row", "a row before the last"])
def test_a_table_that_was_cut_and_has_grown_again_with_rows_of_equal_length(tmp_path, where):
    """Also where everything but the head of one row is as before."""
    path = tmp_path / "table.jsonl"
    rows = [f'{{"context": {10 + i}, "success": [{"0, " * 40}0]}}\n'.encode() for i in range(20)]
    path.write_bytes(b"".join(rows))
    file = FollowedFile(path)
    file.accept(file.read()[1])
    changed = -1 if where == "the last row" else -2
    rows[changed] = rows[changed].replace(b'"context": ', b'"context":9')
    path.write_bytes(b"".join(rows) + rows[0])
    again, lines = file.read()
    assert again
    assert lines == [*rows, rows[0]]


def test_a_row_that_is_longer_than_the_guard(tmp_path):
    path = tmp_path / "table.jsonl"
    path.write_bytes(b'{"context": 1' + b" " * 3 * follow.GUARD + b"}\n")
    file = FollowedFile(path)
    file.accept(file.read()[1])
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    assert file.read()[0]


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"n_contexts": 0}, "n_contexts is 0, but a bank has at least one context"),
        ({"n_contexts": -1, "n_levels": -5}, "n_contexts is -1, but a bank has at least one context"),
        ({"n_levels": 0}, "n_levels is 0, but a ladder has 2 to 127 levels"),
        ({"n_levels": 128}, "n_levels is 128, but a ladder has 2 to 127 levels"),
    ],
)
def test_sizes_that_no_run_has_are_refused(tmp_path, sizes, sentence):
    run = GrowingRun(tmp_path / "run").play(3)
    path = run.folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | sizes))
    read = FollowedRun(run.folder)
    read.advance()
    assert read.trouble.startswith(f"{path} is damaged: {sentence}")
    assert not read.described


def test_a_damaged_row_is_named_and_the_rows_before_it_stay(tmp_path):
    run = damaged(tmp_path / "run")
    read = FollowedRun(run.folder)
    for _ in range(2):  # it stays named
        read.advance()
        assert read.record().about.windows == 30
        assert "windows.jsonl is damaged at row 31" in read.trouble
    lines = (run.folder / "windows.jsonl").read_bytes().splitlines(keepends=True)
    (run.folder / "windows.jsonl").write_bytes(b"".join(lines[:30]))
    read.advance()
    assert read.trouble == ""
    assert read.record().about.windows == 30


@pytest.mark.parametrize(
    ("table", "row", "sentence"),
    [
        (
            "windows",
            b'{"window":12,"context":[0],"level":[0],"success":[1]}',
            "it is of window 12, and window 10 comes",
        ),
        ("windows", b'{"window":10,"context":[99],"level":[0],"success":[1]}', "its context is not a list of whole"),
        ("windows", b'{"window":10,"context":[0],"level":[-1],"success":[1]}', "its level is not a list of whole"),
        ("windows", b'{"window":10,"context":[0],"level":[0],"success":[0.5]}', "its success is not a list of whole"),
        ("windows", b'{"window":10,"context":[0,1],"level":[0],"success":[1]}', "its lists differ in length"),
        ("windows", b'{"window":10}', "there is no 'context'"),
        ("windows", b"{},{}", "it is not one JSON object"),
        ("windows", b"[" * 100_000, "damaged at row 11"),
        (
            "events",
            b'{"window":10000000000,"context":0,"kind":"advance","from_level":1,"to_level":0}',
            "its window is not",
        ),
        ("events", b'{"window":3,"context":0,"kind":"jump","from_level":1,"to_level":0}', ": there is no move jump"),
        (
            "evaluations",
            b'{"window":99,"success":NaN,"groups":{"easy":1,"hard":1},"outcomes":[1]}',
            "not between 0 and 1",
        ),
        ("evaluations", b'{"window":99,"success":1,"groups":{"other":1},"outcomes":[1]}', "not of the groups"),
        ("timing", b'{"window":10,"seconds":-1}', "no time"),
        ("metrics", b'{"window":10,"environment_steps":99999999999999999999999}', "metrics.jsonl is damaged at row 11"),
        ("timing", b'\xff\xfe{"window"', "timing.jsonl is damaged at row 11"),
    ],
)
def test_every_wrong_row_is_named(tmp_path, table, row, sentence):
    run = GrowingRun(tmp_path / "run", rule=rules.Scout(n_min=1)).play(10)
    with (run.folder / f"{table}.jsonl").open("ab") as file:
        file.write(row + b"\n")
    read = FollowedRun(run.folder)
    read.advance()
    assert sentence in read.trouble
    assert str(run.folder / f"{table}.jsonl") in read.trouble
    assert read.record().about.windows == 10


def test_a_frontier_that_was_cut_is_named(tmp_path):
    run = GrowingRun(tmp_path / "run").play(10)
    os.truncate(run.folder / "frontier.int8", 7 * 20 + 3)
    read = FollowedRun(run.folder)
    read.advance()
    assert "frontier.int8 holds 7 windows, and windows.jsonl 10" in read.trouble
    assert read.record().about.windows == 7


def test_a_deleted_run_keeps_what_was_read_and_a_new_one_in_its_place_is_read(tmp_path):
    run = GrowingRun(tmp_path / "run").play(10)
    read = FollowedRun(run.folder)
    read.advance()
    shutil.rmtree(run.folder)
    read.advance()
    assert read.trouble == f"{run.folder} was deleted: what was read before is shown"
    assert read.record().about.windows == 10
    again = GrowingRun(tmp_path / "run", seed=44, n_contexts=8).play(5)
    read.advance()
    assert read.trouble == ""
    assert_same(read, again.folder)


def test_a_long_run_stays_within_its_memory(tmp_path):
    """The oldest windows go, as if the records began later."""
    run = GrowingRun(tmp_path / "run", n_contexts=500, budget=480)
    read = FollowedRun(run.folder, memory=200_000)
    for _ in range(8):
        run.play(60)
        read.advance()
        assert read.nbytes < 3 * 200_000
    record = read.record()
    assert record.about.first > 0
    assert record.about.first + record.about.windows == 480
    whole = load(run.folder)
    np.testing.assert_array_equal(record.frontier, whole.frontier[record.about.first :])
    np.testing.assert_array_equal(record.steps_at, whole.steps_at[record.about.first :])
    later = whole.moves.window >= record.about.first
    np.testing.assert_array_equal(record.moves.context, whole.moves.context[later])


def test_links_pipes_and_giants_are_not_read(tmp_path, monkeypatch):
    outside = tmp_path / "outside.jsonl"
    outside.write_text('{"window":0,"context":[0],"level":[0],"success":[1]}\n')
    run = GrowingRun(tmp_path / "run")
    (run.folder / "windows.jsonl").symlink_to(outside)
    read = FollowedRun(run.folder)
    read.advance()
    assert "it is a link, and links are not followed" in read.trouble
    assert read.record().about.windows == 0
    (run.folder / "windows.jsonl").unlink()
    os.mkfifo(run.folder / "windows.jsonl")
    read.advance()
    assert "is no file" in read.trouble
    (run.folder / "windows.jsonl").unlink()
    (run.folder / "windows.jsonl").write_bytes(b"x" * 5000)
    monkeypatch.setattr(follow, "STEP", 100)
    monkeypatch.setattr(follow, "MOST", 1000)
    read.advance()
    assert "has more than 1,000 bytes" in read.trouble


def test_a_folder_behind_a_link_is_not_read(tmp_path):
    run = GrowingRun(tmp_path / "outside" / "run").play(3)
    (tmp_path / "inside").symlink_to(tmp_path / "outside")
    with pytest.raises(Refusal, match="is reached over a link"):
        disk.read_small(tmp_path / "inside" / "run" / "config.json")
    assert disk.read_small(run.folder / "config.json")


def test_a_file_that_was_replaced_by_one_with_the_same_end(tmp_path):
    path, other = tmp_path / "table.jsonl", tmp_path / "other.jsonl"
    end = b'{"window": 1, "text": "' + b"x" * 100 + b'"}\n'
    path.write_bytes(b'{"window": 0}\n' + end)
    other.write_bytes(b'{"window": 7}\n' + end)
    file = FollowedFile(path)
    file.accept(file.read()[1])
    os.replace(other, path)
    again, lines = file.read()
    assert again
    assert lines[0] == b'{"window": 7}\n'


ROWS = [json.dumps({"window": w, "text": "x" * (w % 7)}).encode() + b"\n" for w in range(60)]


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(["rows", "part", "cut", "delete", "replace"]), st.integers(0, 30)), max_size=14)
)
def test_lines_of_a_file_that_is_written_cut_deleted_and_replaced(tmp_path_factory, steps):
    """After each step the lines that the reader has are those of the file."""
    path = tmp_path_factory.mktemp("file") / "table.jsonl"
    file, have = FollowedFile(path), []
    for step, n in steps:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]
        following = b"".join(ROWS[len(whole) : len(whole) + n])
        if step == "delete":
            path.unlink(missing_ok=True)
        elif step == "cut":
            path.write_bytes(b"".join(whole[: len(whole) - n])) if n < len(whole) else path.write_bytes(b"")
        elif step == "replace":
            path.unlink(missing_ok=True)
            path.write_bytes(f'{{"window": 0, "other": {n}}}\n'.encode())
        else:
            path.write_bytes(b"".join(whole) + (following if step == "rows" else following[: len(following) // 2]))
        again, lines = file.read()
        file.accept(lines)
        have = (lines if again or not file.rows else have + lines) if lines or again else have
        expected = path.read_bytes() if path.exists() else b""
        assert b"".join(have if path.exists() else []) == expected[: expected.rfind(b"\n") + 1]
        have = have if path.exists() else []


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["play", "cut", "garbage", "mend"]), st.integers(1, 6)), max_size=8), st.data()
)
def test_a_run_to_which_anything_happens(tmp_path_factory, steps, data):
    """The reader never fails. When the records are whole again, it has what the report reads."""
    folder = tmp_path_factory.mktemp("run")
    curriculum = Curriculum(rules.Scout(n_min=1), 4, 3, log_dir=folder, seed=data.draw(st.integers(0, 3)))
    rng, saved, read = np.random.default_rng(0), [], FollowedRun(folder.resolve())
    tables = ["windows.jsonl", "events.jsonl", "frontier.int8", "config.json"]
    for step, n in steps:
        if step == "play":
            saved.append(curriculum.state_dict())
            for _ in range(n):
                cells = curriculum.assign(4)
                curriculum.report(cells, rng.random(4) < 0.6)
        elif step == "cut" and saved:
            curriculum.load_state_dict(saved.pop())
        elif step == "garbage":
            path = folder / data.draw(st.sampled_from(tables))
            kept = path.read_bytes() if path.exists() else b""
            path.write_bytes(kept + data.draw(st.binary(max_size=40)))
            read.advance()
            if read.described:
                read.record()
            path.write_bytes(kept)
        read.advance()
        if read.described:
            read.record()
    read.advance()
    assert read.trouble == ""
    if JsonLines(folder / "windows.jsonl").size():
        assert_same(read, folder)
