"""Persistent threads that step the environments of a batch.

Python threads help because MuJoCo's functions release the GIL. Each environment has its own data, so results do not
depend on which thread steps it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

from scout_rl.files.refusal import Refusal

Work = Callable[[int], object]
"""Work on the environment of that index."""


class WorkerThreads:
    """``n_threads - 1`` waiting threads, which all batches of the process share, and the caller's."""

    def __init__(self, n_threads: int) -> None:
        if n_threads < 1:
            raise Refusal(f"a batch needs at least one thread, not {n_threads}.")
        self.n_threads = n_threads

    def each(self, work: Work, n: int) -> None:
        """Call ``work(i)`` for i in 0..n-1 and wait. Each free thread takes the next index.

        The first exception is raised here once all threads have stopped.
        """
        indices = iter(range(n))  # its next() is atomic under the GIL
        if self.n_threads == 1 or n == 1:
            return _drain(work, indices)
        pool = _pool(self.n_threads - 1, os.getpid())
        others = [pool.submit(_drain, work, indices) for _ in range(self.n_threads - 1)]
        try:
            _drain(work, indices)
        finally:
            wait(others)
        for other in others:
            other.result()


def _drain(work: Work, indices: Iterator[int]) -> None:
    for i in indices:
        work(i)


@cache
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process: threads do not survive a fork."""
    return ThreadPoolExecutor(n_threads, "scout-batch")
