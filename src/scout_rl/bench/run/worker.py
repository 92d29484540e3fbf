"""One run, or one batch, in a separate process: ``python -m scout_rl.bench.run.worker``. All engines start it so.

The job is one line of JSON on standard input. The pipe stays open while the parent process lives. When it closes, the
worker ends at once. No run is lost by that: it can be killed at any moment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from scout_rl.bench.run.signals import undisturbed
from scout_rl.bench.run.sources import with_stored_sources
from scout_rl.bench.run.store import Store, open_store
from scout_rl.bench.run.threads import environment, lease_cores
from scout_rl.files.lock import LOCK, acquire, is_held
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import RUN, read_run

FAILED = "failed "
"""Begins the line of a batch's log that says why one of its runs failed."""


def job(
    name: str,
    config: dict[str, Any],
    out: str,
    threads: int,
    until: int | None = None,
    *,
    seed_stream: bool = False,
) -> dict[str, Any]:
    """The job of a worker, as JSON values."""
    return {
        "name": name,
        "config": config,
        "out": out,
        "threads": threads,
        "until": until,
        "seed_stream": seed_stream,
    }


def batch_job(
    name: str,
    runs: Mapping[str, dict[str, Any]],
    out: str,
    threads: int,
    width: int,
    until: int | None = None,
) -> dict[str, Any]:
    """The job of a worker that trains a batch; ``runs`` are configs by the runs' names, ``name`` is the log's."""
    return {"name": name, "runs": dict(runs), "out": out, "threads": threads, "width": width, "until": until}


class WorkerProcess:
    """A worker, as its parent process sees it.

    Create it before a ``try``, start it inside, close it in ``finally``: then no exception, not even from a signal,
    leaves a worker running.
    """

    def __init__(self, work: dict[str, Any]) -> None:
        self.work = work
        self.log = open_store(work["out"]).local_folder(".campaign") / f"{work['name']}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> list[str]:
        """Lock the runs, start the process and send it its job; returns the runs that other processes train.

        Those are left out, and without any other run no process is started. The worker inherits the locks, so that they
        are free when it ends, however it ends.
        """
        store = open_store(self.work["out"])
        with ExitStack() as files:
            claims = {name: _claim(store, name, files) for name in self.work.get("runs", [self.work["name"]])}
            taken = [name for name, lock in claims.items() if lock is None]
            locks = [lock.fileno() for lock in claims.values() if lock is not None]
            if not locks:
                return taken
            if taken:
                runs = {name: config for name, config in self.work["runs"].items() if name not in taken}
                self.work = {**self.work, "runs": runs}
            self._launch(locks)
        return taken

    def _launch(self, locks: list[int]) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "scout_rl.bench.run.worker"]
        with self.log.open("wb") as log, undisturbed():
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(self.work["threads"]),
                start_new_session=True,  # Ctrl-C reaches it only as a closed pipe
                pass_fds=locks if os.name == "posix" else (),
            )
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(self.work).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died already; its exit code says so

    def ended(self) -> bool:
        """Whether it was started and has ended."""
        return self.process is not None and self.process.poll() is not None

    def error(self) -> str | None:
        """Wait for its end; why it failed in one sentence, or None."""
        assert self.process is not None
        code = self.process.wait()
        if code == 0:
            return None
        if code < 0:
            return f"the worker was ended by {signal.Signals(-code).name}"
        lines = self._lines()
        return lines[-1] if lines else f"the worker ended with exit code {code}"

    def failed_runs(self) -> dict[str, str]:
        """Why single runs of a batch failed, by name, as its log says."""
        words = [line.removeprefix(FAILED).partition(": ") for line in self._lines() if line.startswith(FAILED)]
        return {name: reason for name, _, reason in words}

    def _lines(self) -> list[str]:
        return self.log.read_text(errors="replace").strip().splitlines()

    def close(self) -> None:
        """End it, if it still runs."""
        with undisturbed():
            if self.process is not None:
                self.process.kill()
                self.process.wait()


def main() -> int:
    """Train or continue the run or the batch whose job is on standard input."""
    work = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    leases = lease_cores(work["threads"])  # before JAX counts the cores
    store = open_store(work["out"])
    if "runs" in work:
        return _train_batch(work, store)
    _train(work, store)
    del leases
    return 0


def _train_batch(work: dict[str, Any], store: Store) -> int:
    """Train the batch; a run that fails is a line in the log, the others go on."""
    from scout_rl.bench.run.batch import Batch, Member
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    batch, members = Batch(work["width"]), []

    def push(runs: Sequence[Member], window: int) -> None:
        for run in runs:
            if window % run.config.checkpoint_every == 0 or window == run.config.windows:
                store.push(run.name)

    for name, config in work["runs"].items():
        try:
            store.pull(name)
            whole = RunConfig(**_config(name, config, store))
        except (OSError, Refusal) as error:
            batch.failed[name] = str(error)
        else:
            members.append(Member(name, whole, store.local_folder(name)))
    if members:
        batch.train(members, watch=push, until=work["until"])
    for name, reason in batch.failed.items():
        print(f"{FAILED}{name}: {' '.join(reason.split())}", flush=True)
    return int(bool(batch.failed))


def _train(work: dict[str, Any], store: Store) -> None:
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.train import Progress, train
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    name = work["name"]

    def keep(progress: Progress) -> None:
        if progress.window % config.checkpoint_every == 0 or progress.window == config.windows:
            store.push(name)

    store.pull(name)
    config = RunConfig(**_config(name, work["config"], store))
    train(config, store.local_folder(name), watch=keep, until=work["until"], seed_stream=work["seed_stream"])


def _config(name: str, config: dict[str, Any], store: Store) -> dict[str, Any]:
    """The run's config; a run that has its policy ladder keeps the stored paths of the ladder's sources.

    Its checkpoints belong to the config with those paths, and the folder of runs may have been moved since.
    """
    from scout_rl.bench.run.ladder import LADDER

    folder = store.local_folder(name)
    if not (folder / LADDER).exists() or not (folder / RUN).exists():
        return config
    return with_stored_sources(config, read_run(folder)["config"], store.url)


def _end_with_parent() -> None:
    while os.read(0, 1):  # not through Python's buffer: its lock must be free when the process ends
        pass
    os._exit(3)


def is_being_trained(store: Store, name: str) -> bool:
    """Whether some process trains this run now: of this or another campaign, or ``scout train``."""
    return is_held(_lock_path(store, name)) or is_held(store.local_folder(name) / LOCK)


def _claim(store: Store, name: str, files: ExitStack) -> IO[bytes] | None:
    """Lock a run until ``files`` closes, or for as long as a child inherits the lock; None if it is being trained.

    The lock is held while the run is copied too; `train` also locks the run's folder.
    """
    path = _lock_path(store, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = files.enter_context(path.open("ab"))
    return file if acquire(file) and not is_held(store.local_folder(name) / LOCK) else None


def _lock_path(store: Store, name: str) -> Path:
    return store.local_folder(".campaign") / f"{name}.lock"


if __name__ == "__main__":
    sys.exit(main())
