"""Ctrl-C and what the disk refuses: one sentence and an exit code, never a traceback."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scout_rl import commands
from scout_rl.cli import main
from scout_rl.files.refusal import Refusal
from scout_rl.records import tables
from tests.bench.campaign.small_campaigns import PATIENCE, children, until
from tests.report.planted import config, curve, write_compact

ROOT = Path(__file__).parents[2]
SMALL = ["--windows", "1000000", "--episodes", "4", "--checkpoint-every", "2", "--evaluate-every", "1000000"]
SMALL += [
    "--learner.epochs",
    "1",
    "--learner.row-fractions",
    "1.0",
    "--learner.minibatch",
    "640",
]  # as tiny()


def interrupted(words, when):
    """Exit code and lines of a command that is sent Ctrl-C, all of its processes as a terminal does, at that moment."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scout_rl", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        cwd=ROOT,
    )
    try:
        until(lambda: when(process.pid) or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, said.strip().splitlines()


def test_train_is_stopped_and_goes_on(tmp_path, monkeypatch, capsys):
    words = ["train", "doorkey-small", *SMALL, "--out", tmp_path]

    def saved(pid):
        # One half written has a suffix, and rglob would look into it while it is renamed.
        return any(path.name.isdigit() for path in tmp_path.glob("*/*/*/checkpoints/*"))

    code, lines = interrupted(words, saved)
    assert code == 130
    assert lines[-1] == "stopped; the same command continues from the last checkpoint"
    assert "Traceback" not in "\n".join(lines)
    timing = next(tmp_path.rglob("timing.jsonl"))
    before = timing.read_bytes()

    def stop(path, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "_append", stop)  # at the first row of the first window that it goes on with
    assert main([str(word) for word in words]) == 130
    said = " ".join(capsys.readouterr().out.split())
    assert int(re.search(r"continuing .* from window (\d+)", said)[1]) >= 2
    assert "stopped; the same command continues from the last checkpoint" in said
    assert before.startswith(timing.read_bytes())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes through /proc")
def test_a_simulation_is_stopped(tmp_path):
    words = ["simulate", "conflict", "--seeds", "200", "--out", tmp_path]
    code, lines = interrupted(words, lambda pid: len(children(pid, "simulate")) == 2)
    assert (code, lines[-1]) == (130, "scout: stopped")
    assert "Traceback" not in "\n".join(lines)


def test_a_campaign_is_stopped_while_it_looks_around(monkeypatch, tmp_path, capsys):
    from scout_rl.bench.campaign import conduct

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(conduct, "survey", stop)
    file = ROOT / "campaigns" / "annealing-small.toml"
    assert main(["campaign", str(file), "--out", str(tmp_path / "runs")]) == 130
    assert capsys.readouterr().err == "scout: stopped\n"


def test_a_report_is_stopped(monkeypatch, tmp_path, capsys):
    from scout_rl.report import build

    def stop(*arguments, **named):
        raise KeyboardInterrupt

    record = write_compact(tmp_path / "100.npz", config(), {"all": curve(60, at=range(0, 121, 20))})
    monkeypatch.setattr(build, "report", stop)
    assert main(["report", str(record), "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err.strip() == "scout: stopped"


def test_a_file_in_the_way_is_named(tmp_path, capsys):
    record = write_compact(tmp_path / "100.npz", config(), {"all": curve(60, at=range(0, 121, 20))})
    taken = tmp_path / "taken"
    taken.write_text("")
    file = ROOT / "campaigns" / "annealing-small.toml"
    for words in (
        ["report", str(record), "-o", str(taken)],
        ["campaign", str(file), "--out", str(taken)],
        ["simulate", "proposition", "--K", "3", "--out", str(taken / "x")],
    ):
        assert main(words) == 2
        said = capsys.readouterr().err.strip()
        assert said.startswith(f"scout: {taken}")
        assert said.endswith(("cannot be read or written: Not a directory", "cannot be read or written: File exists"))
        assert "\n" not in said


def failing(monkeypatch, error):
    def raising(*arguments, **named):
        raise error

    monkeypatch.setattr(commands, "function_of", raising)
    return main(["simulate"])


def test_errors_of_the_disk_and_no_others(monkeypatch, capsys):
    full = OSError(errno.ENOSPC, "No space left on device", "a/b.json")
    assert failing(monkeypatch, full) == 2
    assert capsys.readouterr().err == "scout: a/b.json cannot be read or written: No space left on device\n"
    assert failing(monkeypatch, OSError(errno.ENOSPC, "No space left on device")) == 2
    assert capsys.readouterr().err == "scout: reading or writing failed: No space left on device\n"
    assert failing(monkeypatch, Refusal("the bank is empty; name another")) == 2
    assert capsys.readouterr().err == "scout: the bank is empty; name another\n"
    for mistake in (*(kind("a bug") for kind in (ValueError, TypeError, KeyError, RuntimeError)), OSError("a bug")):
        with pytest.raises(type(mistake)):
            failing(monkeypatch, mistake)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_standard_output_on_a_full_disk():
    with open("/dev/full", "w") as full:
        left = subprocess.run(
            [sys.executable, "-m", "scout_rl", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert left.returncode == 2
    assert left.stderr.startswith("scout: ")
    assert left.stderr.endswith("No space left on device\n")
    assert left.stderr.count("\n") == 1
