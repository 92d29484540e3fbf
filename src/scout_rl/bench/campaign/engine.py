"""The contract of an engine, and the engine for a single machine: a pool of worker processes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.run.worker import WorkerProcess, job


class Ended(NamedTuple):
    """A run that its engine has ended."""

    run: PlannedRun
    error: str | None
    """Why it failed, or None."""
    times: int = 1
    """How often it was tried; 0 if another process trains it."""


class Engine(Protocol):
    """Starts runs and reports which have ended; it knows nothing of records or order."""

    slots: int
    """Runs that can be trained at the same time."""

    def room(self) -> bool:
        """Whether another run may be started."""

    def start(self, run: PlannedRun, chances: int) -> None:
        """Start or continue a run; it may fail ``chances`` times more."""

    def ended(self) -> list[Ended]:
        """The runs that ended since the last call."""

    def close(self) -> None:
        """End all runs."""


class Pool:
    """Workers on this machine."""

    def __init__(self, out: str, workers: int, threads: int) -> None:
        self.out, self.slots, self.threads = out, workers, threads
        self._running: dict[str, tuple[PlannedRun, WorkerProcess]] = {}
        self._taken: list[PlannedRun] = []

    def room(self) -> bool:
        """Whether a slot is free."""
        return len(self._running) < self.slots

    def start(self, run: PlannedRun, chances: int) -> None:
        """Start the run in a new process, unless another process trains it."""
        worker = WorkerProcess(job(run.name, run.config.as_dict(), self.out, self.threads))
        self._running[run.name] = run, worker  # before it starts, so that `close` always knows it
        try:
            taken = worker.start()
        except OSError:
            worker.close()
            del self._running[run.name]
            raise
        if taken:
            del self._running[run.name]
            self._taken.append(run)

    def ended(self) -> list[Ended]:
        """The runs whose process has ended, and those that other processes train."""
        taken, self._taken = self._taken, []
        gone = [(run, worker) for run, worker in self._running.values() if worker.ended()]
        for run, _ in gone:
            del self._running[run.name]
        return [*(Ended(run, None, 0) for run in taken), *(Ended(run, worker.error()) for run, worker in gone)]

    def close(self) -> None:
        """Kill all workers; their runs can be continued from their checkpoints."""
        for _, worker in self._running.values():
            worker.close()
        self._running.clear()
