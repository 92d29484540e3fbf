"""The command ``scout``. Each subcommand is a typed function; `--help` comes from its signature."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import textwrap

from scout_rl import __version__, commands
from scout_rl.commands.notices import silence_notices
from scout_rl.files.atomic import UNWRITABLE
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

REFUSED, STOPPED = 2, 130
"""Exit codes of a refusal and of an interrupt (128 + SIGINT)."""
READER_LEFT = 141
"""Exit code when the reader closed the pipe: 128 + SIGPIPE."""


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand. A refusal or a disk error prints one sentence (exit code 2); an interrupt returns 130.

    ``scout ... | head`` ends without a traceback.
    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # not at exit, where its errors cannot be caught
    except BrokenPipeError:
        _discard_standard_output()
        return READER_LEFT
    except OSError as error:  # standard output is on a full disk
        _discard_standard_output()
        return _refuse(f"standard output cannot be written: {error.strerror}")


def _discard_standard_output() -> None:
    """Discard the rest of standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str] | None) -> int:
    try:
        return _command(arguments)
    except BrokenPipeError:
        raise
    except Refusal as refusal:
        return _refuse(str(refusal))
    except OSError as error:
        if error.filename is None and error.errno not in UNWRITABLE:
            raise
        named = "reading or writing failed" if error.filename is None else f"{error.filename} cannot be read or written"
        return _refuse(f"{named}: {error.strerror or error}")
    except KeyboardInterrupt:
        print("scout: stopped", file=sys.stderr)
        return STOPPED


def _refuse(sentence: str) -> int:
    print(f"scout: {sentence}", file=sys.stderr)
    return REFUSED


def _command(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help"):
        print(commands.overview())
        return 0
    if words[0] == "--version":
        print(f"scout-rl {__version__}")
        return 0
    silence_notices()
    with naming_extras(f"scout {words[0]}", "demo" if words[0] == "demo" else ""):
        function = commands.function_of(words)
        import rich  # noqa: F401
        import tyro

        about = _folded(inspect.getdoc(function) or "")
        return int(tyro.cli(function, prog=f"scout {words[0]}", description=about, args=words[1:]) or 0)


def _folded(doc: str) -> str:
    """What a docstring says before its arguments, in lines that fit the terminal; lists stay as they are.

    Lines after the first are indented: tyro joins those that begin with a letter.
    """
    width = min(80, shutil.get_terminal_size().columns)
    paragraphs = doc.partition("\nArgs:")[0].strip().split("\n\n")
    return "\n\n".join(
        part if "\n  " in part else textwrap.fill(part, width, subsequent_indent="  ") for part in paragraphs
    )


if __name__ == "__main__":
    sys.exit(main())
