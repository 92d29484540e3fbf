"""The hardware that a run's numbers and speed depend on: processor, cores, threads, backend."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
"""Makes XLA repeat results exactly on a GPU; a CPU does so anyway."""


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
