"""The subcommands of ``scout``, one file each."""

from collections.abc import Callable

from scout_rl.commands.campaign import campaign_command
from scout_rl.commands.demo import demo
from scout_rl.commands.environments import picture, verify_codec
from scout_rl.commands.evaluate import evaluate
from scout_rl.commands.ladder import ladder
from scout_rl.commands.repeat import repeat
from scout_rl.commands.report import diagnose, report
from scout_rl.commands.simulate import simulate
from scout_rl.commands.train import train_command


def commands(arguments: list[str]) -> dict[str, Callable[..., int]]:
    """Every subcommand by name; the flags of some depend on the arguments."""
    return {
        "simulate": simulate,
        "ladder": ladder,
        "train": train_command(arguments),
        "evaluate": evaluate,
        "campaign": campaign_command(arguments),
        "report": report,
        "diagnose": diagnose,
        "repeat": repeat,
        "picture": picture,
        "verify-codec": verify_codec,
        "demo": demo,
    }
