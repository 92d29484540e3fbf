"""The last line of a command: what to do next."""

from __future__ import annotations


def say_next(*commands: object) -> None:
    """Print the words, separated by spaces, as the next command to type."""
    print("next:", *commands, flush=True)
