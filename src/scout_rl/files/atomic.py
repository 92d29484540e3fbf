"""Atomic writes, and bytes that survive a power cut."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

UNWRITABLE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EEXIST, errno.EISDIR),
}
"""Errors of writing: the disk is full, broken or not ours, or something is in the way."""

PARTIAL = ".partial"
"""How the name of a file ends that is not yet whole."""


def write_bytes(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all: see `replacing`."""
    with replacing(path, durable=durable) as partial:
        partial.write_bytes(data)


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file to write, then rename it: a killed process leaves the old file or the new one.

    With ``durable`` the bytes are on the disk before the file has its name.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}{PARTIAL}")
    try:
        yield partial
        if durable:
            sync([partial])
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def sync(paths: Iterable[Path]) -> None:
    """Flush files and folders to the disk; skip those that do not exist, and folders on Windows, which cannot be."""
    for path in paths:
        if path.exists() and not (os.name == "nt" and path.is_dir()):
            handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
