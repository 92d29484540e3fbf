"""``scout verify-codec`` and ``scout picture``: for users' environments and records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal


def verify_codec(
    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")],
    /,
    *,
    codec: Annotated[str, tyro.conf.arg(metavar="MODULE:OBJECT", help_behavior_hint="")] = "",
    kwargs: Annotated[str, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = "{}",
) -> int:
    """Check that the states of an environment can be stored and restored exactly.

    Args:
        env: A Gymnasium id (FetchPickAndPlace-v4), MODULE:ID for one that a module registers, or MODULE:FACTORY or
            path/to/file.py:FACTORY, where FACTORY is a function or class that makes the environment.
        codec: Your own codec, as MODULE:OBJECT or path/to/file.py:OBJECT; by default the one that fits.
        kwargs: Arguments of gymnasium.make or of FACTORY, such as '{"env_name": "door-open-v3"}'.
    """
    from scout_rl.codecs import verify_codec_main

    try:
        arguments = json.loads(kwargs)
    except ValueError as error:
        raise Refusal(f"--kwargs is no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise Refusal(f"--kwargs must be a JSON object, not {kwargs}")
    code = verify_codec_main(env, arguments, codec)
    if code == 0:
        say_next("record one success per context and cut it into starts: docs/environment.md")
    return code


def picture(
    log_dir: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG_DIR")],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")] = None,
) -> int:
    """Draw the frontiers, starts, success and moves of one run, or of every run below a folder.

    Args:
        log_dir: Where a curriculum or a run wrote its records, or a folder of such.
        out: The picture (PNG, PDF or SVG), or a folder for those of several runs; by default frontier.png in each run.
    """
    import matplotlib  # noqa: F401  # missing, it is named before anything is read

    from scout_rl.commands.bars import counting
    from scout_rl.curriculum.picture import picture as draw
    from scout_rl.records.tables import WINDOWS
    from scout_rl.report.read.runs import find

    runs = [run for run in find([log_dir]) if run.is_dir()] if log_dir.is_dir() else []
    if runs in ([], [log_dir]):
        print(draw(log_dir, out))
        say_next("scout diagnose", log_dir)
        return 0
    drawn = []
    with counting(Console(stderr=True), "drawing", len(runs)) as show_done:
        for number, run in enumerate(runs):
            show_done(number)
            if not (run / WINDOWS).exists() or not (run / WINDOWS).stat().st_size:
                print(f"{run} holds no closed window yet: there is nothing to draw")
                continue
            name = "-".join(run.relative_to(log_dir).parts)
            drawn.append(draw(run, None if out is None else out / f"{name}.png"))
    if not drawn:
        raise Refusal(f"none of the {len(runs)} runs in {log_dir} holds a closed window yet: there is nothing to draw")
    print(*drawn, sep="\n")
    say_next("scout report", log_dir)
    return 0
