"""The process pool: whatever dies in the middle, all runs finish, with the bytes of an undisturbed campaign."""

import json
import os
import re
import signal

import pytest

from scout_rl.bench.hardware import n_threads
from scout_rl.cli import main
from scout_rl.records import compact
from tests.bench.campaign.small_campaigns import (
    Hold,
    alive,
    campaign,
    children,
    finish,
    records,
    run_folders,
    until,
    windows,
    write_file,
)

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds workers to kill through /proc")
RULES = ("scout", "anneal")
WINDOWS = 10
SETTING = "doorkey-small"
THREADS = "--threads", str(n_threads())  # as of runs in this process


def test_the_pool(tmp_path, capsys):
    """One test, because every part compares with the same undisturbed campaign.

    That one comes second: its two workers find compiled what one worker has left, and do not compile it both.
    """
    for name in ("undisturbed", "elsewhere", "disturbed"):
        (tmp_path / name).mkdir()
    ended = a_killed_campaign_and_a_killed_worker(tmp_path / "disturbed")
    there = undisturbed(tmp_path / "undisturbed")
    a_run_that_always_fails_is_listed_and_the_rest_goes_on(*there)
    finished_runs_are_packed_and_then_count_as_finished(there[0], tmp_path / "elsewhere", capsys)
    assert ended == {name: records(folder) for name, folder in run_folders(there[0] / "runs").items()}  # to the byte


def small(path, rules):
    """A campaign of runs that compile what `tiny()` does."""
    file = write_file(path, rules, [40], WINDOWS)
    file.write_text(file.read_text().replace("doorkey-split-small", SETTING))
    return file


def undisturbed(here):
    """Two runs, and one that cannot succeed: where its folder should be is a file."""
    file = small(here / "c.toml", (*RULES, "random"))
    assert main(["campaign", str(file), "--out", str(here / "runs"), "--dry-run"]) == 0
    assert not (here / "runs").exists()  # a dry run leaves nothing
    blocked = here / "runs" / SETTING / "random"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    code, printed = finish(campaign(file, here / "runs", "--workers", "2", *THREADS, "--pack", str(here / "results")))
    return here, code, printed


def a_run_that_always_fails_is_listed_and_the_rest_goes_on(here, code, printed):
    assert code == 1
    assert "3 runs: 2 finished, 1 failed" in printed
    (line,) = [line for line in printed.splitlines() if line.startswith(f"failed {SETTING}/random/40")][-1:]
    assert "cannot be written: Not a directory" in line
    (kept,) = (here / "runs/.campaign").rglob("*.failures.json")
    assert [sorted(row) for row in json.loads(kept.read_text())] == [["error", "windows"]] * 3
    assert len(run_folders(here / "runs")) == 2


def finished_runs_are_packed_and_then_count_as_finished(here, tmp_path, capsys):
    capsys.readouterr()
    words = ["--out", str(tmp_path / "runs"), "--pack", str(here / "results")]
    packed = sorted((here / "results").rglob("*.npz"))
    assert [path.parent.name for path in packed] == sorted(RULES)
    assert [len(compact.unpack(path).context) for path in packed] == [WINDOWS] * 2
    # elsewhere, without the run folders: the records are enough, only the run that is not there is to do
    assert main(["campaign", str(here / "c.toml"), *words, "--dry-run"]) == 0
    assert "1 of 3 runs to do" in capsys.readouterr().out
    changed = small(tmp_path / "c.toml", RULES)
    changed.write_text(changed.read_text().replace("checkpoint_every = 2", "checkpoint_every = 5"))
    assert main(["campaign", str(changed), *words]) == 0
    assert capsys.readouterr().out == f"2 runs: 2 finished\nnext: scout report {here / 'results'}\n"


def a_killed_campaign_and_a_killed_worker(tmp_path):
    """The records of the runs that end all the same."""
    file, out = small(tmp_path / "c.toml", RULES), tmp_path / "runs"
    hold = Hold(tmp_path / "hold")

    # The campaign itself dies in the middle of its second run; its worker must not outlive it.
    hold.at(RULES[1], 3)
    process = campaign(file, out, "--workers", "1", *THREADS, env=hold.env)
    until(lambda: hold.held() or process.poll() is not None)
    workers = children(process.pid)
    assert len(workers) == 1
    assert workers == hold.held()
    process.kill()
    process.wait()
    until(lambda: not any(map(alive, workers)))
    order = [next(name for name in run_folders(out) if f"/{rule}/" in name) for rule in RULES]
    assert [windows(out / name) for name in order] == [WINDOWS, 3]
    finished = {path: path.read_bytes() for path in (out / order[0]).iterdir() if path.is_file()}

    # Started again; now the worker dies, further on in the same run.
    hold.at(RULES[1], 7)
    process = campaign(file, out, "--workers", "1", *THREADS, env=hold.env)
    until(lambda: hold.held() or process.poll() is not None)
    (worker,) = children(process.pid)
    assert [worker] == hold.held()
    assert windows(out / order[1]) == 7
    os.kill(worker, signal.SIGKILL)
    hold.nowhere()
    code, printed = finish(process)
    assert code == 0, printed
    assert {path: path.read_bytes() for path in finished} == finished  # timings too: it was not repeated
    said = next((out / ".campaign").rglob("anneal/*.log")).read_text()
    assert int(re.search(r"continuing .* from window (\d+)", said)[1]) == 6  # the checkpoint, not the start
    return {name: records(folder) for name, folder in run_folders(out).items()}
