"""What each subcommand of ``scout`` does, one file each; ``cli`` puts them together."""

from collections.abc import Callable

from scout_rl.commands.simulate import demo, simulate

COMMANDS: dict[str, Callable[..., int]] = {
    "simulate": simulate,
    "demo": demo,
}
