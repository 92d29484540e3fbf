"""A fixed number of threads per run, and cores for them.

Floating-point sums depend on how many threads share them. So a worker has a fixed number of threads and as many cores.
Every library reads the number from a variable of its own.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any

from scout_rl.files.lock import acquire


def environment(threads: int) -> dict[str, str]:
    """The process environment with every library's thread count; other XLA flags are kept."""
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "multi_thread_eigen" not in flag]
    flags.append(f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}")
    counts = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return {**os.environ, **{name: str(threads) for name in counts}, "XLA_FLAGS": " ".join(flags)}


def lease_cores(threads: int) -> list[IO[Any]]:
    """Pin this process to ``threads`` cores, if possible to those that no other worker of this machine holds.

    A lease is a locked file; the operating system releases it when the process ends, however it ends. Where too few
    cores are free the process shares some: its numbers depend only on the count.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    folder = Path(tempfile.gettempdir()) / f"scout-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    usable = sorted(os.sched_getaffinity(0))
    held: dict[int, IO[Any]] = {}
    for core in usable:
        if len(held) == threads:
            break
        file = (folder / str(core)).open("wb")
        if acquire(file):
            held[core] = file
        else:
            file.close()
    spare = [core for core in usable if core not in held]
    start = os.getpid() % max(1, len(spare))  # spread workers without a lease over the cores
    extra = (spare[start:] + spare[:start])[: max(0, threads - len(held))]
    os.sched_setaffinity(0, {*held, *extra})
    return list(held.values())
