"""What reading a file with wrong bytes raises, and the one sentence that it becomes."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

DAMAGE = (
    ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, NotImplementedError, SyntaxError,
    RuntimeError, MemoryError, OverflowError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What NumPy, zipfile and json raise on wrong bytes, and plain Python on what they then make of them."""


@contextmanager
def reading(path: object, otherwise: str = "is damaged") -> Iterator[None]:
    """Make anything that wrong bytes raise in here a ``ValueError`` that names the path.

    A ``ValueError`` that begins with it, or with a file below it, stays as it is. Only reading belongs in here.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} {otherwise}: {told(error)}") from error


def told(error: BaseException) -> str:
    """An error in a few words, on one line."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
