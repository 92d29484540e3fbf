"""Signals that wait: what a signal raises may come between any two lines, and some lines belong together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the block is done, where Python handles them: their exceptions come then."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread alone
        return
    came: list[int] = []
    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for held_back, handler in before.items():
            signal.signal(held_back, handler)
        for late in came:
            signal.raise_signal(late)
