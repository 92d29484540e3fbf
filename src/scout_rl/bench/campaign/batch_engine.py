"""The engine for an accelerator: runs of one setting are trained together as a batch (bench/run/batch.py).

A worker process trains one batch; batches follow one another. Runs of a batch share everything that is compiled. They
also continue at the same window: a batch that was killed is put together again from what its runs left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from scout_rl.bench.campaign.engine import Ended
from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.run.batch import by_common_window, shared_fields
from scout_rl.bench.run.parts import not_pure
from scout_rl.bench.run.store import Store, open_store
from scout_rl.bench.run.worker import WorkerProcess, batch_job
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records import made_with
from scout_rl.records.stored import RUN

WIDTH = 64
"""Most runs of a batch, by default."""


class PlannedBatch(NamedTuple):
    """Runs to be trained together."""

    runs: tuple[PlannedRun, ...]
    width: int


class BatchEngine:
    """One batch at a time, of at most ``slots`` runs."""

    def __init__(self, out: str, slots: int, threads: int) -> None:
        self.out, self.slots, self.threads = out, slots, threads
        self._store = open_store(out)
        self._waiting: list[PlannedRun] = []
        self._arrived: dict[str, int] = {}
        self._running: tuple[PlannedBatch, WorkerProcess] | None = None

    def room(self) -> bool:
        """Always: runs wait here for their batch."""
        return True

    def start(self, run: PlannedRun, chances: int) -> None:
        """Let the run wait for its batch, in the order in which runs came first."""
        self._arrived.setdefault(run.name, len(self._arrived))
        self._waiting.append(run)
        self._waiting.sort(key=lambda waiting: self._arrived[waiting.name])

    def ended(self) -> list[Ended]:
        """The runs of the batch that has ended; then the next batch begins."""
        gone = []
        if self._running is not None and self._running[1].ended():
            batch, worker = self._running
            self._running = None
            error, failed = worker.error(), worker.failed_runs()
            gone = [Ended(run, failed.get(run.name, error)) for run in batch.runs]
        elif self._running is None and self._waiting:
            gone = self._begin(plan_batches(self._waiting, self._store, self.slots)[0])
        return gone

    def close(self) -> None:
        """Kill the worker; its runs can be continued from their checkpoints."""
        if self._running is not None:
            self._running[1].close()
        self._running = None

    def _begin(self, batch: PlannedBatch) -> list[Ended]:
        names = {run.name for run in batch.runs}
        self._waiting = [run for run in self._waiting if run.name not in names]
        key = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:8]
        configs = {run.name: run.config.as_dict() for run in batch.runs}
        log = f"{batch.runs[0].config.setting}/batch-{key}"
        worker = WorkerProcess(batch_job(log, configs, self.out, self.threads, batch.width))
        self._running = batch, worker  # before it starts, so that `close` always knows it
        try:
            taken = worker.start()
        except OSError as problem:
            self.close()
            return [Ended(run, f"its batch cannot be started: {problem.strerror or problem}") for run in batch.runs]
        ours = tuple(run for run in batch.runs if run.name not in taken)
        self._running = (batch._replace(runs=ours), worker) if ours else None
        return [Ended(run, None, 0) for run in batch.runs if run.name in taken]


def plan_batches(runs: Sequence[PlannedRun], store: Store, limit: int) -> list[PlannedBatch]:
    """Put runs together that share what is compiled, and the window at which they begin or continue.

    Runs with checkpoints keep the width that made them, even when fewer of them are left, so that a killed batch ends
    with the numbers of an undisturbed one. ``limit`` is the largest width.
    """
    alike: dict[tuple[str, int], list[PlannedRun]] = {}
    saved = {run.name: store.checkpoints(run.name) for run in runs}
    widths = {run.name: _stored_width(run, store) for run in runs}
    for run in runs:
        alike.setdefault((shared_fields(run.config), widths[run.name] if saved[run.name] else 0), []).append(run)
    batches = []
    for (_, made_by), group in alike.items():
        by_name = {run.name: run for run in group}
        size = min(made_by or limit, limit)
        for _, names in by_common_window({name: saved[name] or [0] for name in by_name}):
            for first in range(0, len(names), size):
                chunk = names[first : first + size]
                width = max([len(chunk), *(widths[name] for name in chunk if widths[name] <= limit)])
                batches.append(PlannedBatch(tuple(by_name[name] for name in chunk), width))
    return batches


def _stored_width(run: PlannedRun, store: Store) -> int:
    """Width of the batch that made the run's latest windows; 0 for a new run, or one that was trained alone."""
    content = store.read(f"{run.name}/{RUN}")
    if content is None:
        return 0
    with reading(f"{store.url}/{run.name}/{RUN}"):
        _, maker = made_with.makers(json.loads(content))[-1]
        return int(maker[made_with.WIDTH]) if maker[made_with.ENGINE] == made_with.BATCH else 0


def require_pure(runs: Sequence[PlannedRun]) -> None:
    """Refuse runs that cannot be part of a batch."""
    for run in runs:
        if run.config.make_learner().plays != "steps":
            raise Refusal(f"{run.name}: {not_pure(run.config)}; use --engine pool or ray")
