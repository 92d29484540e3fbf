"""Runs on a Ray cluster: one task a run, with its cores and memory as resources; Ray does the retrying."""

from __future__ import annotations

import importlib
from typing import Any

from scout_rl.bench.campaign.engine import Ended
from scout_rl.bench.campaign.file import Run
from scout_rl.bench.campaign.machine import MEMORY_PER_RUN
from scout_rl.bench.run.worker import WorkerProcess, job


class RayEngine:
    """Every ready run is a task; the cluster decides where and when.

    A task whose worker or node dies, or that raises, is started again by Ray up to the run's chances and continues
    from the checkpoint. Every node needs this package at the same version, and sees ``out``.
    """

    def __init__(self, out: str, address: str | None, threads: int, memory_per_run: float = MEMORY_PER_RUN) -> None:
        try:
            ray: Any = importlib.import_module("ray")
        except ModuleNotFoundError as error:
            raise ValueError("the engine ray needs the package ray: pip install 'scout-rl[ray]'") from error
        self._ray = ray
        self.out, self.threads = out, threads
        self._owned = not ray.is_initialized()
        if self._owned:
            try:
                ray.init(address=address, log_to_driver=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise ValueError(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from error
        resources = ray.cluster_resources()
        self.slots = max(1, int(resources.get("CPU", 1)) // threads)
        self._task = ray.remote(num_cpus=threads, memory=int(memory_per_run * (1 << 30)), retry_exceptions=True)(_task)
        self._running: dict[Any, tuple[Run, int]] = {}

    def room(self) -> bool:
        """Always: Ray queues what it has no room for."""
        return True

    def start(self, run: Run, chances: int) -> None:
        """Submit the run."""
        task = self._task.options(max_retries=chances - 1, name=run.name)
        reference = task.remote(job(run.name, run.config.as_dict(), self.out, self.threads))
        self._running[reference] = run, chances

    def ended(self) -> list[Ended]:
        """Tasks that are done, or that Ray has given up."""
        if not self._running:
            return []
        done, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [self._ended(reference, *self._running.pop(reference)) for reference in done]

    def close(self) -> None:
        """Cancel what is left, and leave the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._owned:
            self._ray.shutdown()

    def _ended(self, reference: Any, run: Run, chances: int) -> Ended:
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            return Ended(run, str(error.cause), chances)
        except self._ray.exceptions.RayError as error:
            return Ended(run, str(error).strip().splitlines()[0], chances)
        return Ended(run, None)


def _task(given: dict[str, Any]) -> None:
    """The run in a process of its own, so that its threads and numbers are those of the pool's."""
    worker = WorkerProcess(given)
    try:
        worker.start()
        error = worker.error()
    finally:
        worker.close()
    if error is not None:
        raise RuntimeError(error)
