"""What one machine offers a run: cores, memory, and a number of threads that is the same wherever the run is.

Floating-point sums depend on how many threads share them. A worker therefore runs with a fixed thread count, told to
every library through its own variable, on as many cores as it has threads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any

from scout_rl.bench.hardware import n_usable_cores, system_text, within_quota

MEMORY_PER_RUN = 1.5
"""GiB that a run is given. Measured peaks of the full settings: Meta-World 1.04, Fetch 0.80, PointMaze 0.70 GiB."""
_GIB = 1 << 30


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


def n_workers(threads: int, memory_per_run: float = MEMORY_PER_RUN) -> int:
    """How many runs this machine takes at once: by its cores, and by the memory that is free."""
    by_cores = usable_cores() // threads
    by_memory = int(free_memory() / (memory_per_run * _GIB))
    return max(1, min(by_cores, by_memory))


def usable_cores() -> int:
    """Cores that this process may use, within the container's quota."""
    return within_quota(n_usable_cores())


def free_memory() -> int:
    """Bytes that new processes may take, within the container's limit."""
    rows = (line.split() for line in system_text("/proc/meminfo").splitlines())
    free = {row[0]: int(row[1]) * 1024 for row in rows if len(row) >= 2}.get("MemAvailable:")
    if free is None:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit, used = _words("/sys/fs/cgroup/memory.max"), _words("/sys/fs/cgroup/memory.current")
    if limit and limit[0].isdigit() and used:
        free = min(free, int(limit[0]) - int(used[0]))
    return max(0, free)


def _words(path: str) -> list[str]:
    return system_text(path).split()
