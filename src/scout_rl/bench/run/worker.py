"""One run in a process of its own: ``python -m scout_rl.bench.run.worker``, whichever engine starts it.

The job is one line of JSON on standard input. The pipe stays open as long as whoever started the worker lives; when it
closes, the worker ends at once. Nothing is lost by that: a run can be killed at any moment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from scout_rl.bench.run.signals import undisturbed
from scout_rl.bench.run.sources import as_begun
from scout_rl.bench.run.store import Store, open_store
from scout_rl.bench.run.threads import environment, lease_cores
from scout_rl.files.lock import LOCK, hold, is_held
from scout_rl.records.stored import RUN, read_run

PATIENCE = 60.0
"""Seconds to wait for another process to let go of the run: a worker may outlive its campaign by a moment."""


def job(
    name: str,
    config: dict[str, Any],
    out: str,
    threads: int,
    until: int | None = None,
    *,
    seed_stream: bool = False,
) -> dict[str, Any]:
    """What a worker is asked to do, as JSON values."""
    return {
        "name": name,
        "config": config,
        "out": out,
        "threads": threads,
        "until": until,
        "seed_stream": seed_stream,
    }


class WorkerProcess:
    """A worker, seen from the process that waits for it.

    It is made first and started inside the ``try`` whose ``finally`` closes it: no exception, that of a signal
    included, comes between a process that runs and the one who kills it.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.log = open_store(given["out"]).home(".campaign") / f"{given['name']}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, and say what is to be done."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "scout_rl.bench.run.worker"]
        with self.log.open("wb") as log, undisturbed():
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(self.given["threads"]),
                start_new_session=True,  # an interrupt at the keyboard reaches it as a closed pipe
            )
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(self.given).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead already, and its exit code says so

    def ended(self) -> bool:
        """Whether it was started and has."""
        return self.process is not None and self.process.poll() is not None

    def error(self) -> str | None:
        """Wait, then say in one sentence why it failed; None where it did not."""
        assert self.process is not None
        code = self.process.wait()
        if code == 0:
            return None
        if code < 0:
            return f"the worker was ended by {signal.Signals(-code).name}"
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the worker ended with exit code {code}"

    def close(self) -> None:
        """End it, if it still runs."""
        with undisturbed():
            if self.process is not None:
                self.process.kill()
                self.process.wait()


def main() -> int:
    """Train the run that stands on standard input, or continue it."""
    given = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    leases = lease_cores(given["threads"])  # before JAX counts the cores
    store = open_store(given["out"])
    lock = _lock_path(store, given["name"])  # the campaign's, before the run is copied; `train` takes the folder's own
    with hold(lock, PATIENCE, f"{lock} is locked: another process trains this run"):
        _train(given, store)
    del leases
    return 0


def _train(given: dict[str, Any], store: Store) -> None:
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.train import Progress, train
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    name = given["name"]

    def keep(progress: Progress) -> None:
        if progress.window % config.checkpoint_every == 0 or progress.window == config.windows:
            store.push(name)

    store.pull(name)
    config = RunConfig(**_config(given, store))
    train(config, store.home(name), watch=keep, until=given["until"], seed_stream=given["seed_stream"])


def _config(given: dict[str, Any], store: Store) -> dict[str, Any]:
    """The run's config; one that has its policy ladder already keeps the spelling of the ladder's sources.

    Its checkpoints are of that config, and the folder of runs may have been moved since.
    """
    from scout_rl.bench.run.ladder import LADDER

    config: dict[str, Any] = given["config"]
    home = store.home(given["name"])
    if not (home / LADDER).exists() or not (home / RUN).exists():
        return config
    return as_begun(config, read_run(home)["config"], store.url)


def _end_with_parent() -> None:
    while os.read(0, 1):  # past Python's buffer, whose lock a waiting thread may not hold when the process ends
        pass
    os._exit(3)


def held(store: Store, name: str) -> bool:
    """Whether some process trains this run at the moment: of this campaign, of another one, or ``scout train``."""
    return is_held(_lock_path(store, name)) or is_held(store.home(name) / LOCK)


def _lock_path(store: Store, name: str) -> Path:
    return store.home(".campaign") / f"{name}.lock"


if __name__ == "__main__":
    sys.exit(main())
