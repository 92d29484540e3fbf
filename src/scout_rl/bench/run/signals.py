"""Delayed signals: a signal may raise between any two lines, and some lines must run together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay SIGINT and SIGTERM, where Python handles them, until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run only in the main thread
        return
    delayed: list[int] = []
    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda received, frame: delayed.append(received))
        yield
    finally:
        for handled, handler in before.items():
            signal.signal(handled, handler)
        for received in delayed:
            signal.raise_signal(received)
