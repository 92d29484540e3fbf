"""A job array: workers that know nothing of each other share one campaign and one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.campaign.small_campaigns import (
    Hold,
    campaign,
    finish,
    records,
    run_folders,
    until,
    windows,
    write_file,
)

SCRIPT = Path(__file__).parents[3] / "examples" / "slurm_array.sh"
WINDOWS = 2


def task(number, file, out, env):
    """One task of the array, as SLURM starts it."""
    return subprocess.Popen(
        ["bash", str(SCRIPT), str(file), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**env, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_CPUS_PER_TASK": "1"},
    )


@pytest.fixture
def with_command(tmp_path):
    """An environment in which `scout` is this interpreter's."""
    path = tmp_path / "bin" / "scout"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m scout_rl "$@"\n')
    path.chmod(0o755)
    return lambda env: {**env, "PATH": f"{path.parent}{os.pathsep}{env['PATH']}"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_workers_train_every_run_once(tmp_path, with_command):
    """Both are started at once, and each is held in the middle of its first run until the other has one, too."""
    pytest.importorskip("fcntl", reason="there are no file locks here")
    file = write_file(tmp_path / "c.toml", ("scout", "anneal"), [40, 41], WINDOWS)
    hold = Hold(tmp_path / "hold")
    hold.at("any", 1)
    tasks = [task(number, file, tmp_path / "shared", with_command(hold.env)) for number in range(2)]
    until(lambda: len(hold.held()) == 2 or any(worker.poll() is not None for worker in tasks))
    assert len(run_folders(tmp_path / "shared")) == 2
    hold.nowhere()
    ended = [finish(worker) for worker in tasks]
    assert [code for code, _ in ended] == [0, 0], ended
    trained = [int(re.search(r"(\d) trained by this command", printed)[1]) for _, printed in ended]
    assert sum(trained) == 4
    assert min(trained) >= 1

    shared = run_folders(tmp_path / "shared")
    assert [windows(folder) for folder in shared.values()] == [WINDOWS] * 4
    assert not list((tmp_path / "shared").rglob("*.failures.json"))
    assert not any("continuing" in log.read_text() for log in (tmp_path / "shared").rglob("*.log"))

    code, printed = finish(campaign(file, tmp_path / "alone", "--workers", "1"))
    assert code == 0, printed
    alone = run_folders(tmp_path / "alone")
    assert {name: records(folder) for name, folder in shared.items()} == {
        name: records(folder) for name, folder in alone.items()
    }
