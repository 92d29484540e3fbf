"""The engine for a Ray cluster: one task per run, with its cores and memory as resources; Ray retries it."""

from __future__ import annotations

import importlib
import time
from typing import Any

from scout_rl.bench.campaign.engine import Ended
from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.hardware import MEMORY_PER_RUN
from scout_rl.bench.run.worker import WorkerProcess, job
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

PATIENCE = 60.0
"""Seconds to wait for a worker that outlives its node's task for a moment."""


class RayEngine:
    """Every ready run is a task; the cluster decides where and when it runs.

    Ray restarts a task that raises or whose worker or node dies, up to the run's chances. The run then continues from
    its checkpoint. Every node needs the same version of this package, and must see ``out``.
    """

    def __init__(self, out: str, address: str | None, threads: int, memory_per_run: float = MEMORY_PER_RUN) -> None:
        with naming_extras("the engine ray"):
            ray: Any = importlib.import_module("ray")
        self._ray = ray
        self.out, self.threads = out, threads
        self._owned = not ray.is_initialized()
        if self._owned:
            try:
                ray.init(address=address, log_to_driver=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise Refusal(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from error
        resources = ray.cluster_resources()
        self.slots = max(1, int(resources.get("CPU", 1)) // threads)
        self._task = ray.remote(num_cpus=threads, memory=int(memory_per_run * (1 << 30)), retry_exceptions=True)(_task)
        self._running: dict[Any, tuple[PlannedRun, int]] = {}

    def room(self) -> bool:
        """Always: Ray queues the runs."""
        return True

    def start(self, run: PlannedRun, chances: int) -> None:
        """Submit the run."""
        task = self._task.options(max_retries=chances - 1, name=run.name)
        reference = task.remote(job(run.name, run.config.as_dict(), self.out, self.threads))
        self._running[reference] = run, chances

    def ended(self) -> list[Ended]:
        """The runs whose task is done, or that Ray has given up."""
        if not self._running:
            return []
        done, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [self._ended(reference, *self._running.pop(reference)) for reference in done]

    def close(self) -> None:
        """Cancel all tasks and leave the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._owned:
            self._ray.shutdown()

    def _ended(self, reference: Any, run: PlannedRun, chances: int) -> Ended:
        try:
            trained = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            return Ended(run, str(error.cause), chances)
        except self._ray.exceptions.RayError as error:
            return Ended(run, str(error).strip().splitlines()[0], chances)
        return Ended(run, None, int(trained))


def _task(work: dict[str, Any]) -> bool:
    """Train in a worker process, so that threads and numbers are the same as with the pool.

    Returns whether it did: False if another process trains the run.
    """
    worker, deadline = WorkerProcess(work), time.monotonic() + PATIENCE
    try:
        while worker.start():
            if time.monotonic() > deadline:
                return False
            time.sleep(1)
        error = worker.error()
    finally:
        worker.close()
    if error is not None:
        raise RuntimeError(error)
    return True
