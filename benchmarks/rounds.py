"""Candidates in processes of their own, measured in turn, so that a busy machine does not slow one candidate alone.

A candidate is a function without arguments that does the work once. Imports, compiling and filling a replay happen
before the first round. A candidate whose packages are not installed is skipped, with the reason.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = "@@rounds "
"""Begins a worker's lines for the parent; libraries print other lines."""

Make = Callable[[], Callable[[], float | None]]
"""Makes a candidate, which returns its seconds, or None if all of its time counts."""


def serve(make: Make) -> None:
    """The worker: does the work once per line of standard input."""
    try:
        work = make()
        work()
    except ModuleNotFoundError as error:
        _send(skipped=f"{error.name} is not installed")
        return
    _send(ready=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        own_seconds = work()
        _send(seconds=time.perf_counter() - begin if own_seconds is None else own_seconds)


def _send(**message: object) -> None:
    print(MARK + json.dumps(message), flush=True)


class Worker:
    """The parent's handle of a worker process; ``arguments`` begin with its module."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.skipped: str | None = self._receive().get("skipped")

    def round(self) -> float:
        """Seconds of one round."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._receive()["seconds"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _receive(self) -> dict[str, str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(MARK):
                return dict(json.loads(line.removeprefix(MARK)))
        raise RuntimeError(f"the worker of {self.name} ended with status {self.process.wait()}")


def measure(commands: Mapping[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Candidate -> seconds of every round, without the skipped ones."""
    workers = []
    for name, arguments in commands.items():
        worker = Worker(name, arguments)
        if worker.skipped:
            print(f"{name}: skipped: {worker.skipped}", flush=True)
            worker.close()
        else:
            workers.append(worker)
    seconds: dict[str, list[float]] = {worker.name: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            seconds[worker.name].append(worker.round())
    for worker in workers:
        worker.close()
    return seconds


def ratio(seconds: Mapping[str, list[float]], slow: str, fast: str) -> float | None:
    """How many times as long ``slow`` takes: the median over the rounds; None if one was skipped."""
    if slow not in seconds or fast not in seconds:
        return None
    return round(statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True)), 2)
