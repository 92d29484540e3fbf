"""Small networks are several times slower on more threads, and tests share their cores."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """One torch thread, here and in processes that a test starts."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
