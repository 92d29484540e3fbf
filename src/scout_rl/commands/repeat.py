"""``scout repeat``: train a stored run again and compare."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from scout_rl.files.refusal import Refusal


def repeat(
    record: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RECORD")],
    /,
    *,
    windows: int = 50,
    threads: int = 0,
) -> int:
    """Train a stored run again from its config, for its first windows, and compare every number; 0: equal, 1: not.

    Equality, bit for bit, is promised on the same type of machine with the same versions and number of threads; what
    is not the record's is printed. Nothing is left behind.

    Args:
        record: A compact record (results/…/100.npz) or a run folder.
        windows: How many; the budget stays the stored one, so that schedules and evaluations are those of the run.
        threads: Of the computation; 0 takes the record's, or all cores where it does not say.
    """
    from scout_rl.bench.run.repeat import read
    from scout_rl.bench.run.repeat import repeat as again
    from scout_rl.commands.bars import progress_bar

    if threads < 0:
        raise Refusal(f"--threads is {threads}, but cannot be negative")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    stored = read(record, windows)
    config = stored.about["config"]

    def say(unlike: list[str]) -> None:
        text = f"Not as it was: {'; '.join(unlike)}." if unlike else "Versions, source and machine are as they were."
        console.print(f"{text} Equality is promised where all of that is the same.")

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every `finally` runs
    try:
        with progress_bar(console, transient=True) as bar:
            line = bar.add_task(f"{config['setting']} {config['rule']} {config['seed']}", total=stored.windows, news="")
            difference = again(stored, threads=threads, watch=lambda done: bar.update(line, completed=done), say=say)
    except KeyboardInterrupt:
        console.print("stopped; nothing is left behind")
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    if difference is not None:
        console.print(f"different: {difference}")
        return 1
    console.print(f"equal: all numbers of the first {stored.windows} windows")
    return 0
