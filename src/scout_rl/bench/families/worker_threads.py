"""Persistent threads that step the environments of a batch.

Python threads help because MuJoCo's functions release the GIL. Each environment has its own data, so results do not
depend on which thread steps it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from queue import SimpleQueue

from scout_rl.files.refusal import Refusal

Work = Callable[[int], object]
"""Work on the environment of that index."""


class WorkerThreads:
    """``n_threads - 1`` waiting threads, and the caller's."""

    def __init__(self, n_threads: int) -> None:
        if n_threads < 1:
            raise Refusal(f"a batch needs at least one thread, not {n_threads}.")
        self.n_threads = n_threads
        self._process = -1
        self._lock = threading.Lock()

    def each(self, work: Work, n: int) -> None:
        """Call ``work(i)`` for i in 0..n-1 and wait. Each free thread takes the next index.

        The first exception is raised here once all threads have stopped.
        """
        if self.n_threads == 1 or n == 1:
            for i in range(n):
                work(i)
            return
        with self._lock:
            self._start()
            indices = iter(range(n))  # its next() is atomic under the GIL
            for inbox in self._inboxes:
                inbox.put((work, indices))
            errors = [_drain(work, indices), *(self._done.get() for _ in self._inboxes)]
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        """Start the threads of this process: threads do not survive a fork."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._inboxes: list[SimpleQueue[tuple[Work, Iterator[int]]]] = []
        for number in range(self.n_threads - 1):
            inbox: SimpleQueue[tuple[Work, Iterator[int]]] = SimpleQueue()
            self._inboxes.append(inbox)
            name = f"scout-batch-{number}"
            threading.Thread(target=_serve, args=(inbox, self._done), name=name, daemon=True).start()


def _serve(inbox: SimpleQueue[tuple[Work, Iterator[int]]], done: SimpleQueue[BaseException | None]) -> None:
    while True:
        work, indices = inbox.get()
        done.put(_drain(work, indices))
        del work, indices  # an idle thread must not keep a batch alive


def _drain(work: Work, indices: Iterator[int]) -> BaseException | None:
    try:
        for i in indices:
            work(i)
    except BaseException as error:
        return error
    return None


@cache
def worker_threads(n_threads: int) -> WorkerThreads:
    """The process's ``n_threads`` threads, shared by all batches."""
    return WorkerThreads(n_threads)
