"""The subcommands of ``scout``: what each is for, and where it is. Most have a file of their own."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from scout_rl.files.refusal import Refusal


class Command(NamedTuple):
    """A line of ``scout --help``, and the function ``module:name`` behind it.

    A name that ends with ``_command`` makes the function from the words of the command line.
    """

    about: str
    function: str


GROUPS = {
    "Try it": {
        "new": Command("write a small training with a curriculum, ready to run", "new:new"),
        "demo": Command("train three rules side by side on a small bank, in minutes", "demo:demo"),
        "simulate": Command("play the rules on a model of a learner, in minutes", "simulate:simulate"),
    },
    "Train": {
        "train": Command("train one run of a setting, or continue it", "train:train_command"),
        "ladder": Command("build, check and draw the starts of a setting", "ladder:ladder"),
        "campaign": Command("train many runs from a file, here or on a cluster", "campaign:campaign_command"),
    },
    "Look": {
        "watch": Command("see runs live on a page, or on a terminal", "watch:watch"),
        "picture": Command("draw how the curriculum of a run went", "environments:picture"),
        "diagnose": Command("say which contexts are stuck, and why", "report:diagnose"),
    },
    "Compare": {
        "report": Command("make one page of any runs: tables, figures, conclusions", "report:report"),
        "evaluate": Command("play a run's policy on held-out contexts, also on video", "evaluate:evaluate"),
    },
    "Check": {
        "verify-codec": Command("find out whether your environment restores exactly", "environments:verify_codec"),
        "repeat": Command("train a stored run again, and compare every number", "repeat:repeat"),
    },
}
"""What one wants, and the commands for it."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def overview() -> str:
    """What ``scout --help`` prints."""
    width = max(map(len, COMMANDS))
    lines = ["usage: scout COMMAND ...", "", "Reset curricula for sparse-reward reinforcement learning."]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {command.about}" for name, command in group.items())]
    lines += [
        "",
        "scout COMMAND --help lists the options of a command.",
        "Read more: README.md, then docs/start.md (your own training, in ten minutes).",
    ]
    return "\n".join(lines)


def function_of(words: list[str]) -> Callable[..., int]:
    """The function of the command that the first word names."""
    name = words[0]
    if name not in COMMANDS:
        like = difflib.get_close_matches(name, COMMANDS, 1)
        meant = f"did you mean {like[0]}? " if like else ""
        raise Refusal(f"there is no command {name!r}; {meant}scout --help lists the commands")
    module, _, attribute = COMMANDS[name].function.partition(":")
    function: Callable[..., int] = getattr(import_module(f"scout_rl.commands.{module}"), attribute)
    return function(words) if attribute.endswith("_command") else function  # type: ignore[return-value]
