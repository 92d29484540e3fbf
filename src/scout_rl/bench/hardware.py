"""The hardware that a run's numbers and speed depend on: processor, cores, threads, backend; how many runs fit it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
"""Makes XLA repeat results exactly on a GPU; a CPU does so anyway."""
MEMORY_PER_RUN = 1.5
"""GiB. Measured peaks of the full settings: Meta-World 1.04, Fetch 0.80, PointMaze 0.70 GiB."""
_GIB = 1 << 30


def ran_on() -> dict[str, Any]:
    """The hardware, for run.json; its cores are the machine's. It initialises JAX, which fixes backend and threads."""
    import jax

    backend = jax.default_backend()
    hardware = {
        "backend": backend,
        "device": jax.devices()[0].device_kind,
        "processor": processor(),
        "cores": within_quota(os.cpu_count() or 1),
        "threads": n_threads(),
    }
    return hardware | {"deterministic": DETERMINISTIC in _flags()} if backend == "gpu" else hardware


def n_threads() -> int:
    """Threads that share XLA's sums on the CPU: ``NPROC``, else one per core of this process."""
    if "--xla_cpu_multi_thread_eigen=false" in _flags():
        return 1
    count = os.environ.get("NPROC", "")
    if count.isdigit() and int(count) > 0:
        return int(count)
    return n_usable_cores()


def _flags() -> list[str]:
    return os.environ.get("XLA_FLAGS", "").split()


def n_usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def within_quota(cores: int) -> int:
    """The number of cores, limited by the container's quota."""
    quota = system_text("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        return min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def processor() -> str:
    """The name of the processor's model."""
    for line in system_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def system_text(path: str) -> str:
    """The content of a system file; empty where there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


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
