"""Ray, for real: two nodes, eight runs, a worker killed and a node stopped; the records are the pool's, bit for bit."""

import os
import signal
from pathlib import Path

import pytest

from tests.bench.campaign.small_campaigns import (
    Hold,
    alive,
    campaign,
    children,
    finish,
    records,
    run_folders,
    until,
    write_file,
)

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'scout-rl[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """The file, and the eight runs as the pool leaves them."""
    here = tmp_path_factory.mktemp("ray")
    file = write_file(here / "c.toml", ("scout", "anneal", "mixture", "local-frontier"), [40, 41], windows=30)
    code, printed = finish(campaign(file, here / "pool"))
    assert code == 0, printed
    expected = {name: records(folder) for name, folder in run_folders(here / "pool").items()}
    assert len(expected) == 8
    return file, expected


@pytest.fixture
def hold(tmp_path):
    return Hold(tmp_path / "hold")


@pytest.fixture
def cluster(monkeypatch, hold):
    """A head and a second node, one core each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", hold.env["PYTHONPATH"])  # the nodes hand it on to their tasks
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = made.add_node(num_cpus=1)
    yield made, second
    made.shutdown()


def ray_workers():
    """(process of the task, process of its run) of every task under way."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_text()
            except OSError:
                continue
            if title.startswith("ray::"):
                found += [(int(entry.name), child) for child in children(int(entry.name))]
    return found


@pytest.mark.parametrize("kept", ["folder", "url"])
def test_a_killed_worker_and_a_stopped_node_change_no_byte(eight, cluster, hold, tmp_path, kept):
    file, expected = eight
    made, second = cluster
    out = tmp_path / "runs"
    url = out if kept == "folder" else f"file://{out}"
    hold.at("any", 5)  # every run, after its second checkpoint
    process = campaign(file, url, "--engine", "ray", "--address", made.address, "--memory", "0.25")

    def under_way(n):
        """So many runs are held, each below its task."""
        return len(ray_workers()) == n and {run for _, run in ray_workers()} == set(hold.held())

    until(lambda: under_way(2) or process.poll() is not None)
    task, run = ray_workers()[0]
    os.kill(task, signal.SIGKILL)
    until(lambda: not alive(run))  # the run went with its task
    until(lambda: under_way(2) or process.poll() is not None)
    before = {task for task, _ in ray_workers()}
    assert len(before) == 2
    made.remove_node(second, allow_graceful=False)
    hold.nowhere()
    code, printed = finish(process)
    assert code == 0, printed
    assert "8 runs: 8 finished" in printed
    assert len(before - {task for task, _ in ray_workers()}) == 2
    assert {name: records(folder) for name, folder in run_folders(out).items()} == expected


def test_a_run_that_always_fails_is_listed(eight, cluster, tmp_path):
    made, _ = cluster
    file = write_file(tmp_path / "c.toml", ("scout", "random"), [40], windows=2)
    blocked = tmp_path / "runs" / "doorkey-split-small" / "random"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    flags = "--engine", "ray", "--address", made.address, "--memory", "0.25"
    code, printed = finish(campaign(file, tmp_path / "runs", *flags))
    assert code == 1
    assert "2 runs: 1 finished, 1 failed" in printed
    assert "cannot be written: Not a directory" in printed
