"""Ctrl-C reaches every process of a command: the parent handles it, its children just end."""

import signal


def end_quietly() -> None:
    """Make an interrupt end this child process at once, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
