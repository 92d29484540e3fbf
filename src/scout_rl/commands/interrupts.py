"""Ctrl-C reaches every process of a command: the first one answers it, its children just end."""

import signal


def end_quietly() -> None:
    """For the start of a child: an interrupt ends it at once, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
