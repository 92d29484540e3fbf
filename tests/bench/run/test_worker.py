"""The process of a worker: whatever signal comes while it is started, it is killed in the end."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from scout_rl.bench.campaign.engine import Pool
from scout_rl.bench.run import worker
from scout_rl.bench.run.signals import undisturbed
from tests.bench.campaign.small_campaigns import alive, until

REAL = subprocess.Popen
RUN = SimpleNamespace(name="run", config=SimpleNamespace(as_dict=dict))


@pytest.fixture
def terminated():
    """SIGTERM leaves through every `finally`, as in `scout repeat`."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def started(monkeypatch):
    """The processes of workers, which do nothing but wait to be killed."""
    pids = []

    def popen(command, **named):
        process = REAL([sys.executable, "-c", "import time; time.sleep(600)"], **named)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(worker.subprocess, "Popen", popen)
    return pids


def interrupt_within(monkeypatch, number):
    """Let the signal come after the process has begun, and before anyone knows of it."""
    begun = worker.subprocess.Popen

    def popen(command, **named):
        process = begun(command, **named)
        signal.raise_signal(number)
        return process

    monkeypatch.setattr(worker.subprocess, "Popen", popen)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_while_it_is_started(tmp_path, monkeypatch, terminated, started, number, error):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    interrupt_within(monkeypatch, number)
    process = worker.WorkerProcess(worker.job("run", {}, str(tmp_path), 1))
    try:
        with pytest.raises(error):
            process.start()
    finally:
        process.close()
        signal.signal(signal.SIGINT, before)
    (pid,) = started
    assert not alive(pid)


def test_the_pool_knows_what_it_was_starting(tmp_path, monkeypatch, terminated, started):
    interrupt_within(monkeypatch, signal.SIGTERM)
    pool = Pool(str(tmp_path), 1, 1)
    with pytest.raises(SystemExit):
        pool.start(RUN, 1)
    (pid,) = started
    assert alive(pid)
    pool.close()
    assert not alive(pid)


def test_what_cannot_be_started_takes_no_room(tmp_path, monkeypatch):
    def popen(command, **named):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(worker.subprocess, "Popen", popen)
    pool = Pool(str(tmp_path), 1, 1)
    with pytest.raises(OSError, match="unavailable"):
        pool.start(RUN, 1)
    assert pool.room()
    assert pool.ended() == []


def test_of_two_pools_one_starts_the_run(tmp_path, started):
    """Both have seen it free. The second does not touch the log, and has the run when the first one's worker dies."""
    pytest.importorskip("fcntl", reason="there are no file locks here")
    first, second = Pool(str(tmp_path), 1, 1), Pool(str(tmp_path), 1, 1)
    first.start(RUN, 1)
    (log,) = tmp_path.rglob("*.log")
    log.write_text("of the first")
    for _ in range(2):
        second.start(RUN, 1)
        assert second.ended() == [(RUN, None, 0)]
        assert second.room()
    assert second.ended() == []
    assert len(started) == 1
    assert log.read_text() == "of the first"
    os.kill(started[0], signal.SIGKILL)
    until(lambda: not alive(started[0]))
    second.start(RUN, 1)  # whether or not the first has noticed
    assert len(started) == 2
    assert alive(started[1])
    second.close()
    first.close()


def test_a_batch_is_of_the_runs_that_are_free(tmp_path, started):
    pytest.importorskip("fcntl", reason="there are no file locks here")
    alone = worker.WorkerProcess(worker.job("b", {}, str(tmp_path), 1))
    batch = worker.WorkerProcess(worker.batch_job("batch", {"a": {}, "b": {}}, str(tmp_path), 1, 2))
    try:
        assert alone.start() == []
        assert batch.start() == ["b"]
        assert batch.work["runs"] == {"a": {}}
        assert worker.WorkerProcess(worker.batch_job("c", {"a": {}, "b": {}}, str(tmp_path), 1, 2)).start() == [
            "a",
            "b",
        ]
    finally:
        alone.close()
        batch.close()
    assert len(started) == 2


def test_a_signal_waits_for_the_end_of_the_block(terminated):
    done = []

    def block():
        with undisturbed():
            signal.raise_signal(signal.SIGTERM)
            done.append(True)

    for _ in range(2):  # the handler is back afterwards
        with pytest.raises(SystemExit):
            block()
    assert len(done) == 2
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)
