"""What a run says of the machine it ran on."""

import os

import pytest

from scout_rl.bench import hardware
from scout_rl.bench.run.threads import environment


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_are_those_that_a_worker_is_given(monkeypatch, threads):
    for name, value in environment(threads).items():
        monkeypatch.setenv(name, value)
    assert hardware.n_threads() == threads


def test_threads_are_otherwise_the_cores_of_the_process(monkeypatch):
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 6})
        assert hardware.n_threads() == 3
    monkeypatch.setenv("NPROC", "many")
    assert hardware.n_threads() >= 1


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 16), ("250000 100000", 2), ("50000 100000", 1), ("", 16)])
def test_a_quota_takes_cores_away(monkeypatch, quota, cores):
    monkeypatch.setattr(hardware, "system_text", lambda path: quota)
    assert hardware.within_quota(16) == cores


def test_the_processor_has_a_name(monkeypatch):
    assert hardware.processor()
    monkeypatch.setattr(hardware, "system_text", lambda path: "flags : x\nmodel name\t: Abacus 3\nmodel name\t: B\n")
    assert hardware.processor() == "Abacus 3"


def test_nothing_but_what_numbers_depend_on():
    pytest.importorskip("jax")
    assert set(hardware.ran_on()) == {"backend", "device", "processor", "cores", "threads"}


@pytest.mark.parametrize(("flags", "asked"), [("", False), ("--x=1 --xla_gpu_deterministic_ops=true", True)])
def test_on_a_gpu_also_whether_equal_results_were_asked_for(monkeypatch, flags, asked):
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert hardware.ran_on()["deterministic"] is asked
