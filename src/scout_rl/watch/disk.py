"""Reading files of a run folder that others write, cut, replace or delete at any moment.

Only regular files are opened, and no link is followed: what a folder holds cannot lead out of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal

MOST = 64 << 20
"""Bytes of the longest row, and of the largest small file (a config, a picture): more is refused, not read."""


@contextmanager
def reading_foreign(path: object) -> Iterator[None]:
    """As `reading`; JSON that is nested too deeply is damage too."""
    try:
        with reading(path):
            yield
    except RecursionError as error:
        raise Refusal(f"{path} is damaged: it is nested too deeply") from error


class Signature(NamedTuple):
    """What changes when a file changes."""

    inode: int
    size: int
    changed: int
    """In nanoseconds."""


def signature(path: Path) -> Signature | None:
    """The file's signature; None where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return Signature(status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a regular file in a folder whose path has no links; anything else is refused."""
    folder = path.parent
    if os.path.realpath(folder) != str(folder):
        raise Refusal(f"{folder} is reached over a link, and links are not followed")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # the last: a pipe must not block
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "it is a link, and links are not followed" if path.is_symlink() else error.strerror
        raise Refusal(f"{path} cannot be read: {reason}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(f"{path} is no file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_small(path: Path, most: int = MOST) -> bytes:
    """A whole small file; a large one is refused."""
    with opened(path) as file:
        size = os.fstat(file).st_size
        if size > most:
            raise Refusal(f"{path} has {size:,} bytes, and at most {most:,} are read")
        return read_span(file, 0, size)


def read_span(file: int, start: int, size: int) -> bytes:
    """``size`` bytes from ``start``, or fewer at the end of the file."""
    parts = []
    while size > 0 and (part := os.pread(file, size, start)):
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def lines_of(data: bytes) -> list[bytes]:
    """The complete lines."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def last_lines(path: Path, count: int, guess: int = 4096) -> list[bytes]:
    """The last ``count`` complete lines, or fewer; empty where there is no file."""
    try:
        with opened(path) as file:
            size = os.fstat(file).st_size
            while True:
                start = max(0, size - guess)
                whole = lines_of(read_span(file, start, size - start))[1 if start else 0 :]
                if len(whole) >= count or start == 0 or guess >= MOST:
                    return whole[-count:]
                guess *= 4
    except FileNotFoundError:
        return []


def first_line(path: Path, guess: int = 4096) -> bytes:
    """The first complete line; empty where there is none."""
    try:
        with opened(path) as file:
            while True:
                data = read_span(file, 0, guess)
                if b"\n" in data:
                    return data[: data.index(b"\n") + 1]
                if len(data) < guess or guess >= MOST:
                    return b""
                guess *= 4
    except FileNotFoundError:
        return b""
