"""Candidates in processes of their own, measured in turn, so that a disturbance of the machine hits no candidate alone.

A candidate is a function without arguments that does the work once; what makes it ready (imports, compiling, filling a
replay) happens before the first round. A candidate whose packages are not installed is left out, with the reason.
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
"""Begins the lines of a worker that are meant for the parent; libraries print others."""

Make = Callable[[], Callable[[], float | None]]
"""Makes a candidate; the candidate returns its own seconds, or None where all of its time counts."""


def serve(make: Make) -> None:
    """The worker's side: do the work once for every line that arrives."""
    try:
        work = make()
        work()
    except ModuleNotFoundError as error:
        _tell(skipped=f"{error.name} is not installed")
        return
    _tell(ready=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        own = work()
        _tell(seconds=time.perf_counter() - begin if own is None else own)


def _tell(**message: object) -> None:
    print(MARK + json.dumps(message), flush=True)


class Worker:
    """The parent's side: a process of the module that the arguments begin with."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.skipped: str | None = self._hear().get("skipped")

    def round(self) -> float:
        """Seconds of one round."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._hear()["seconds"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _hear(self) -> dict[str, str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(MARK):
                return dict(json.loads(line.removeprefix(MARK)))
        raise RuntimeError(f"the worker of {self.name} ended with status {self.process.wait()}")


def measure(commands: Mapping[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every round by candidate; those that are left out are not in it."""
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
    """How many times as long ``slow`` takes: the median over the rounds; None where one was left out."""
    if slow not in seconds or fast not in seconds:
        return None
    return round(statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True)), 2)
