"""How many runs a machine can train at once."""

from __future__ import annotations

import os

from scout_rl.bench.hardware import n_usable_cores, system_text, within_quota

MEMORY_PER_RUN = 1.5
"""GiB. Measured peaks of the full settings: Meta-World 1.04, Fetch 0.80, PointMaze 0.70 GiB."""
_GIB = 1 << 30


def n_workers(threads: int, memory_per_run: float = MEMORY_PER_RUN) -> int:
    """Runs at a time, by cores and free memory; at least 1."""
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
    limit, used = (system_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used:
        free = min(free, int(limit) - int(used))
    return max(0, free)
