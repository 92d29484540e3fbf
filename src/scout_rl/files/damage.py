"""What reading a file with wrong bytes raises, and the one sentence that it becomes.

Our own mistakes (``TypeError``, ``AttributeError`` and the like) are not among it: they show their traceback. So
whoever reads JSON checks its shape first (`shape.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scout_rl.files.refusal import Refusal

DAMAGE = (ValueError, LookupError, OverflowError, OSError)
"""What json and `archive.unpack` raise on wrong bytes, what the disk does, and content that lacks a part."""


@contextmanager
def reading(path: object, otherwise: str = "is damaged") -> Iterator[None]:
    """Make anything that wrong bytes raise in here a refusal that names the path.

    A ``ValueError`` that begins with it, or with a file below it, stays as it is. Only reading belongs in here.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise Refusal(f"{path} {otherwise}: {told(error)}") from error


def told(error: BaseException) -> str:
    """An error in a few words, on one line."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
