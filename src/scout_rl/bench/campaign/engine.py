"""The contract of an engine, and the one for a single machine: so many workers at a time, each a process."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from scout_rl.bench.campaign.file import Run
from scout_rl.bench.run.worker import WorkerProcess, job


class Ended(NamedTuple):
    """A run that its engine is done with."""

    run: Run
    error: str | None
    """Why it failed; None where it did not."""
    times: int = 1
    """How often it was tried."""


class Engine(Protocol):
    """Starts runs and says which have ended; knows nothing of records, order or chances."""

    slots: int
    """Runs that can go on at the same time."""

    def room(self) -> bool:
        """Whether another run may be started."""

    def start(self, run: Run, chances: int) -> None:
        """Begin or continue a run that may fail ``chances`` times more."""

    def ended(self) -> list[Ended]:
        """The runs that ended since this was last asked."""

    def close(self) -> None:
        """End whatever still runs."""


class Pool:
    """Workers on this machine."""

    def __init__(self, out: str, workers: int, threads: int) -> None:
        self.out, self.slots, self.threads = out, workers, threads
        self._running: dict[str, tuple[Run, WorkerProcess]] = {}

    def room(self) -> bool:
        """Fewer workers than asked for."""
        return len(self._running) < self.slots

    def start(self, run: Run, chances: int) -> None:
        """In a new process."""
        worker = WorkerProcess(job(run.name, run.config.as_dict(), self.out, self.threads))
        self._running[run.name] = run, worker  # before it runs, so that `close` knows it however this ends
        try:
            worker.start()
        except OSError:
            worker.close()
            del self._running[run.name]
            raise

    def ended(self) -> list[Ended]:
        """Those whose process is gone."""
        gone = [(run, worker) for run, worker in self._running.values() if worker.ended()]
        for run, _ in gone:
            del self._running[run.name]
        return [Ended(run, worker.error()) for run, worker in gone]

    def close(self) -> None:
        """Kill what runs; it continues from its checkpoint another time."""
        for _, worker in self._running.values():
            worker.close()
        self._running.clear()
