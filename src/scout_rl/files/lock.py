"""One process at a time trains a run: it holds the lock of the run's folder, an empty file in it.

The operating system gives the lock back when the process ends, however it ends. Where there are no such locks (other
platforms, some network file systems) everyone is let in.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scout_rl.files.refusal import Refusal

LOCK = ".lock"
MOMENT = 2.0
"""Seconds for a process that is about to end, or that only looks, to let go."""
TAKEN = {errno.EAGAIN, errno.EACCES}


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder, which is made where there is none; refuse one that another process holds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise Refusal(f"the run folder {folder} cannot be written: {error.strerror}") from error
    taken = f"{folder} is being trained by another process: wait until that one ends, or choose another folder"
    with hold(folder / LOCK, MOMENT, taken):
        yield


@contextmanager
def hold(path: Path, seconds: float, taken: str) -> Iterator[None]:
    """Hold the lock of a file; where it cannot be had within so many seconds, refuse with the sentence ``taken``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    with path.open("ab") as file:
        while not _taken(file):
            if time.monotonic() > deadline:
                raise Refusal(taken)
            time.sleep(0.1)
        yield


def is_held(path: Path) -> bool:
    """Whether some process holds the lock of a file; one that is not there is nobody's."""
    try:
        file = path.open("r+b")
    except OSError:
        return False
    with file:
        return not _taken(file)


def _taken(file: IO[bytes]) -> bool:
    try:
        import fcntl
    except ModuleNotFoundError:
        return True  # there are no such locks here
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in TAKEN  # nor in this file system
    return True
