"""The command ``scout``. Each subcommand is a typed function; `--help` comes from its signature."""

from __future__ import annotations

import os
import sys

READER_LEFT = 141
"""What a shell reports of a command whose reader closed the pipe: 128 + SIGPIPE."""


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; a refusal is one sentence and exit code 2. ``scout ... | head`` ends without a traceback."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, not at exit, where nobody catches what it raises
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        return READER_LEFT


def _run(arguments: list[str] | None) -> int:
    try:
        import rich  # noqa: F401
        import tyro
    except ModuleNotFoundError as missing:
        print(f"scout: the command line needs {missing.name}: pip install 'scout-rl[cli,plot]'", file=sys.stderr)
        return 2
    from scout_rl import commands

    words = sys.argv[1:] if arguments is None else arguments
    try:
        return int(
            tyro.extras.subcommand_cli_from_dict(
                commands.commands(words),
                prog="scout",
                description="Per-context reset curricula for sparse-reward reinforcement learning.",
                args=words,
            )
            or 0
        )
    except ValueError as refusal:
        print(f"scout: {refusal}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
