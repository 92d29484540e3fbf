"""What a run is computed on, as far as its numbers and its speed depend on it: processor, cores, threads, backend."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
"""Asks XLA for equal results of equal runs on a GPU; on a CPU they are equal anyway."""


def ran_on() -> dict[str, Any]:
    """For run.json; asks JAX, which then has made up its mind about both backend and threads."""
    import jax

    backend = jax.default_backend()
    told = {
        "backend": backend,
        "device": jax.devices()[0].device_kind,
        "processor": processor(),
        "cores": n_cores(),
        "threads": n_threads(),
    }
    return told | {"deterministic": DETERMINISTIC in _flags()} if backend == "gpu" else told


def n_threads() -> int:
    """Threads that share XLA's sums on the CPU: those of ``NPROC``, else one for each core of this process."""
    if "--xla_cpu_multi_thread_eigen=false" in _flags():
        return 1
    told = os.environ.get("NPROC", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    return n_usable_cores()


def _flags() -> list[str]:
    return os.environ.get("XLA_FLAGS", "").split()


def n_usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_cores() -> int:
    """Of the machine, whichever of them this process is pinned to, within the container's quota."""
    return within_quota(os.cpu_count() or 1)


def within_quota(cores: int) -> int:
    """As many of the cores as the container may keep busy."""
    quota = system_text("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        return min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def processor() -> str:
    """The model's name, as the system tells it."""
    for line in system_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def system_text(path: str) -> str:
    """A file that the system may or may not have."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
