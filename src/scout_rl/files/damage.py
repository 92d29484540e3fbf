"""Errors of reading a file with wrong bytes become one sentence that names the file.

Our own mistakes (``TypeError``, ``AttributeError``) are not caught: they show their traceback. So check the shape of
JSON first (`shape.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scout_rl.files.refusal import Refusal

DAMAGE = (ValueError, LookupError, OverflowError, OSError)
"""Raised by json, `archive.unpack` and the disk, and by content that lacks a part."""


@contextmanager
def reading(path: object, otherwise: str = "is damaged") -> Iterator[None]:
    """Turn every error of `DAMAGE` into a refusal that names the path.

    A ``ValueError`` that begins with the path, or with a file below it, stays as it is. Put only reading in this block.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise Refusal(f"{path} {otherwise}: {error_text(error)}") from error


def error_text(error: BaseException) -> str:
    """An error on one line."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
