"""Locks on files: only one process at a time trains a run.

The operating system releases a lock when its process ends, however it ends. Where locks do not exist (other platforms,
some network file systems) every process is let in.
"""

from __future__ import annotations

import errno
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scout_rl.files.refusal import Refusal

LOCK = ".lock"
MOMENT = 2.0
"""Seconds to wait for a process that is about to end, or that only checks the lock."""
TAKEN = {errno.EAGAIN, errno.EACCES}


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a run folder and hold its lock; refuse a folder that another process holds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise Refusal(f"the run folder {folder} cannot be written: {error.strerror}") from error
    sentence = f"{folder} is being trained by another process: wait until that one ends, or choose another folder"
    with hold(folder / LOCK, MOMENT, sentence):
        yield


@contextmanager
def hold(path: Path, seconds: float, sentence: str) -> Iterator[None]:
    """Hold the lock of a file; refuse with ``sentence`` when it is not free within ``seconds``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    with path.open("ab") as file:
        while not acquire(file):
            if time.monotonic() > deadline:
                raise Refusal(sentence)
            time.sleep(0.1)
        yield


def is_held(path: Path) -> bool:
    """Whether some process holds the lock of a file, which may be missing."""
    try:
        file = path.open("r+b")
    except OSError:
        return False
    with file:
        return not acquire(file)


def has_locks(folder: Path) -> bool:
    """Whether the file system of an existing folder locks files."""
    with tempfile.NamedTemporaryFile(dir=folder) as first, open(first.name, "r+b") as second:
        return acquire(first) and not acquire(second)


def acquire(file: IO[bytes]) -> bool:
    """Lock an open file, if it is free; whether it is ours now."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return True  # this platform has no locks
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in TAKEN  # this file system has no locks
    return True
