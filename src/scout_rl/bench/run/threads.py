"""A number of threads that is the same wherever a run is trained, and cores for them.

Floating-point sums depend on how many threads share them. A worker therefore runs with a fixed thread count, which
every library reads from its own variable, on as many cores as it has threads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any


def environment(threads: int) -> dict[str, str]:
    """The process environment with every library's thread count set; XLA's own flags are kept and added to."""
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "multi_thread_eigen" not in flag]
    flags.append(f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}")
    counts = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return {**os.environ, **{name: str(threads) for name in counts}, "XLA_FLAGS": " ".join(flags)}


def lease_cores(threads: int) -> list[IO[Any]]:
    """Pin this process to ``threads`` cores that no other worker of this machine holds, if there are so many.

    A lease is a locked file; the operating system gives it back when the process ends, however it ends. Where all
    cores are taken the process shares some: the count is what its numbers may depend on.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    import fcntl

    folder = Path(tempfile.gettempdir()) / f"scout-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    usable = sorted(os.sched_getaffinity(0))
    held: dict[int, IO[Any]] = {}
    for core in usable:
        if len(held) == threads:
            break
        file = (folder / str(core)).open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        held[core] = file
    spare = [core for core in usable if core not in held]
    start = os.getpid() % max(1, len(spare))  # workers without a lease of their own spread out
    extra = (spare[start:] + spare[:start])[: max(0, threads - len(held))]
    os.sched_setaffinity(0, {*held, *extra})
    return list(held.values())
