"""Damaged and just-started records in `report`, `diagnose`, `repeat`, `campaign status`: one sentence, exit code 2."""

import json
import shutil
import zipfile

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.bench.campaign import state
from scout_rl.bench.campaign.file import load as load_campaign
from scout_rl.cli import main
from scout_rl.records.compact import unpack
from scout_rl.report.build import report
from scout_rl.report.read.runs import load
from tests.report.planted import as_run_folder, config, curve, played_folder, staircase, write_compact

AT = np.arange(0, 121, 20)


def refused(capsys, *words):
    """Run a command that must refuse; its one sentence."""
    assert main([str(word) for word in words]) == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("scout: ")
    assert "\n" not in message
    return message


def commands(path, tmp_path):
    return [("report", path, "-o", tmp_path / "out"), ("diagnose", path), ("repeat", path)]


@pytest.fixture
def record(tmp_path):
    frontier = staircase(120, 10, every=np.arange(8, 18))
    return write_compact(tmp_path / "100.npz", config(), {"all": curve(60, at=AT)}, frontier=frontier)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run folder of 40 windows."""
    return played_folder(tmp_path_factory.mktemp("whole") / "run", 40, reach=20)


@pytest.fixture
def folder(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def log_dir(folder):
    for name in ("run.json", "evaluations.jsonl", "metrics.jsonl", "timing.jsonl"):
        (folder / name).unlink()
    return folder


def flip_inside(path, name):
    """Turn over bytes in the middle of one array; the zip's directory stays whole."""
    with zipfile.ZipFile(path) as file:
        entry = file.getinfo(f"{name}.npy")
    content = bytearray(path.read_bytes())
    start = entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 3
    content[start : start + 12] = bytes(b ^ 0xFF for b in content[start : start + 12])
    path.write_bytes(bytes(content))


# -- compact records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["context", "frontier", "about.json"])
def test_flipped_bytes_in_every_command(record, tmp_path, capsys, name):
    flip_inside(record, name)
    for words in commands(record, tmp_path):
        assert f"{record} is no compact record, or a damaged one: " in refused(capsys, *words)


def test_flipped_bytes_in_a_campaigns_record(record, tmp_path, capsys):
    file = tmp_path / "a.toml"
    file.write_text('[[runs]]\nsettings=["doorkey-small"]\nrules=["scout"]\nseeds=[40]\nwindows=8')
    (run,) = load_campaign(file).runs
    packed = state.record_path(tmp_path / "packed", run)
    packed.parent.mkdir(parents=True)
    flip_inside(record, "context")
    shutil.copy(record, packed)
    words = ["campaign", "status", file, "--out", tmp_path / "runs", "--pack", tmp_path / "packed"]
    assert main([str(word) for word in words]) == 1
    assert f"failed {run.name}: {packed} is no compact record, or a damaged one: " in capsys.readouterr().out


@pytest.mark.parametrize("table", ["run.json", "timing.jsonl", "evaluations.jsonl"])
def test_a_campaigns_damaged_folder(tmp_path, capsys, table):
    file = tmp_path / "a.toml"
    file.write_text('[[runs]]\nsettings=["doorkey-small"]\nrules=["scout"]\nseeds=[40]\nwindows=8')
    (run,) = load_campaign(file).runs
    home = tmp_path / "runs" / run.name
    home.mkdir(parents=True)
    (home / "run.json").write_text(json.dumps({"config": run.config.as_dict()}))
    (home / "timing.jsonl").write_text('{"window": 0, "seconds": 1.0}\n')
    (home / table).write_text('{"window": 0, "sec\n')
    assert main(["campaign", "status", str(file), "--out", str(tmp_path / "runs")]) == 1  # one run is listed as failed
    assert f"failed {run.name}: {home / table} is damaged: " in capsys.readouterr().out


def test_any_flipped_byte_is_a_value_error(record):
    """Two hundred places, headers and directory among them; a byte that changes nothing may pass."""
    rng, right = np.random.default_rng(0), record.read_bytes()
    messages = []
    for place in rng.integers(len(right), size=200).tolist():
        record.write_bytes(right[:place] + bytes([right[place] ^ (1 << place % 8)]) + right[place + 1 :])
        try:
            load(record)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(sentence.startswith(str(record)) for sentence in messages)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"\x93NUMPY\x01\x00", b"\x80\x04K\x01."])
def test_what_is_no_zip_file(tmp_path, capsys, content):
    path = tmp_path / "100.npz"
    path.write_bytes(content)
    for words in commands(path, tmp_path):
        message = refused(capsys, *words)
        assert f"{path} is no compact record, or a damaged one: it is not a zip file" in message
        assert "pickle" not in message


@pytest.mark.parametrize(
    ("config_of", "arrays", "sentence"),
    [
        ({}, {"level": lambda a: a[:-2]}, "its arrays have 118, 120 windows"),
        ({}, {"frontier": lambda a: a[:7]}, "its arrays have 7, 120 windows"),
        ({}, {"level": lambda a: a + 9}, "a rollout's level is 1"),
        ({}, {"context": lambda a: a - 5}, "a rollout's context is -5"),
        ({}, {"evaluated_at": lambda a: a[:3]}, "its evaluations or moves are cut"),
        ({"seed": None}, {}, "its config has seed None"),
    ],
)
def test_arrays_that_do_not_fit_together(record, capsys, config_of, arrays, sentence):
    with np.load(record) as file:
        held = {name: file[name] for name in file.files}
    note = json.loads(held["about.json"].tobytes())
    note["run"]["config"] |= config_of
    held |= {name: change(held[name]) for name, change in arrays.items()}
    np.savez(record, **{**held, "about.json": np.frombuffer(json.dumps(note).encode(), np.uint8)})
    message = refused(capsys, "diagnose", record)
    assert str(record) in message
    assert sentence in message


def test_a_record_that_is_not_there(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"gone\.npz does not exist"):
        unpack(tmp_path / "gone.npz")
    assert f"{tmp_path / 'gone.npz'} does not exist" in refused(capsys, "repeat", tmp_path / "gone.npz")


# -- run folders and log_dirs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.json", "config.json", "windows.jsonl", "events.jsonl"])
@pytest.mark.parametrize("text", ['{"half\n', "\x00\n", "[3]\n"])
def test_a_damaged_file_is_named_in_every_command(folder, tmp_path, capsys, name, text):
    (folder / name).write_text(text)
    for words in commands(folder, tmp_path):
        assert str(folder / name) in refused(capsys, *words)


@pytest.mark.parametrize("name", ["evaluations.jsonl", "metrics.jsonl"])
def test_a_damaged_table_is_named(folder, tmp_path, capsys, name):
    (folder / name).write_text('{"window": 0, "environ\n')
    for words in commands(folder, tmp_path):
        assert f"{folder / name} is damaged: " in refused(capsys, *words)


def test_a_table_that_is_too_short(folder, capsys):
    rows = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(rows[:7]))
    assert f"{folder}/metrics.jsonl has 7 rows, and 40 windows are closed" in refused(capsys, "repeat", folder)
    assert load(folder).about.windows == 40  # the report counts what is there


def test_a_row_without_its_cells(folder, tmp_path, capsys):
    rows = (folder / "windows.jsonl").read_text().splitlines(keepends=True)
    (folder / "windows.jsonl").write_text("".join(rows[:-1]) + '{"window": 39}\n')
    for words in commands(folder, tmp_path):
        assert f"{folder} is damaged: there is no 'context'" in refused(capsys, *words)


def test_a_move_that_there_is_not(folder, tmp_path, capsys):
    row = '{"window": 3, "context": 0, "kind": "jump", "from_level": 1, "to_level": 0, "s": 1.0, "n": 3}\n'
    with (folder / "events.jsonl").open("a") as file:
        file.write(row)
    for words in commands(folder, tmp_path):
        said = refused(capsys, *words)
        assert "there is no move jump" in said
        assert str(folder) in said


@pytest.mark.parametrize("keep", [None, 0, 6 * 11, 6 * 11 + 3])
def test_a_frontier_that_is_missing_or_short(log_dir, tmp_path, capsys, keep):
    path = log_dir / "frontier.int8"
    if keep is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:keep])
    for words in commands(log_dir, tmp_path)[:2]:
        assert str(log_dir) in refused(capsys, *words)


def test_a_window_that_is_left_out(log_dir, capsys):
    rows = (log_dir / "windows.jsonl").read_text().splitlines(keepends=True)
    (log_dir / "windows.jsonl").write_text("".join(rows[:5] + rows[6:]))
    frontier = (log_dir / "frontier.int8").read_bytes()
    (log_dir / "frontier.int8").write_bytes(frontier[:-6])
    assert str(log_dir) in refused(capsys, "diagnose", log_dir)


def just_started(folder):
    for name in ("windows", "events", "metrics", "timing", "evaluations"):
        (folder / f"{name}.jsonl").write_bytes(b"")
    (folder / "frontier.int8").unlink()
    return folder


def test_a_run_without_a_closed_window(folder, tmp_path, capsys):
    just_started(folder)
    assert f"{folder} holds no closed window yet: there is nothing to diagnose" in refused(capsys, "diagnose", folder)
    assert f"{folder} holds no closed window yet: there is nothing to repeat" in refused(capsys, "repeat", folder)
    text = report([folder], tmp_path / "out").read_text()  # which shows a campaign under way
    assert "0 of 40: not finished, in no table" in text


def test_a_log_dir_without_a_closed_window(log_dir, tmp_path, capsys):
    just_started(log_dir)
    assert f"{log_dir} holds no closed window yet: there is nothing to diagnose" in refused(capsys, "diagnose", log_dir)
    assert "0: not finished, in no table" in report([log_dir], tmp_path / "out").read_text()


# -- tables -------------------------------------------------------------------------------------------------------


def tables_of(out):
    return sorted(path.name for path in (out / "tables").glob("*.md"))


def test_unfinished_runs_alone_are_in_no_table(folder, tmp_path):
    run_config = config(windows=120, constants=rules.Scout().constants())
    as_run_folder(folder, run_config, {"all": curve(60, at=AT)})
    text = report([folder], tmp_path / "out").read_text()
    assert "1 not finished and in no table" in text
    assert "No finished run: nothing is compared, and there is no table." in text
    assert "where training happened" not in text
    assert tables_of(tmp_path / "out") == []


def test_tables_are_named_by_what_they_hold(log_dir, record, tmp_path):
    report([log_dir], tmp_path / "theirs")
    assert tables_of(tmp_path / "theirs") == [f"{log_dir.name}-training.md"]
    report([record], tmp_path / "ours")
    assert tables_of(tmp_path / "ours") == ["planted-solving.md", "planted-success.md", "planted-training.md"]
