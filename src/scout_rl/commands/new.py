"""``scout new``: write a small training that runs as it is."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tyro

from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal

SKELETON = "skeletons/lock.py"


def new(file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")], /) -> int:
    """Write a training to begin with: environment, reset_to, PPO, evaluation.

    It needs Stable-Baselines3 (the extra sb3), and trains twice in half a minute: plain, and with a curriculum.

    Args:
        file: A Python file that does not exist yet, such as my_env.py.
    """
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise Refusal(f"{file} is no name of a Python file: choose one such as my_env.py")
    if file.exists():
        raise Refusal(f"{file} exists already: choose another name")
    module = find_spec(file.stem)
    if module is not None and module.origin is not None:
        raise Refusal(f"{file} would hide the module {file.stem!r} from what it imports: choose another name")
    text = (resources.files("scout_rl.commands") / SKELETON).read_text("utf-8")
    with file.open("x", encoding="utf-8") as opened:
        opened.write(text.replace("python FILE", f"python {file.name}", 1))
    print(f"{file}: an environment, reset_to, PPO with and without a curriculum, and their evaluation")
    say_next("python", file)
    return 0
