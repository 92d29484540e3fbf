"""``scout verify-codec`` and ``scout picture``: for users' environments and records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from scout_rl.files.refusal import Refusal


def verify_codec(
    env_id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV_ID")], /, *, kwargs: str = "{}"
) -> int:
    """Check that an environment's states can be stored and restored exactly; says what drifts, if anything does.

    Args:
        env_id: A registered Gymnasium environment, such as FetchPickAndPlace-v4.
        kwargs: Arguments of gymnasium.make as JSON, such as '{"env_name": "door-open-v3"}'.
    """
    from scout_rl.codecs import verify_codec_main

    try:
        arguments = json.loads(kwargs)
    except ValueError as error:
        raise Refusal(f"--kwargs is no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise Refusal(f"--kwargs must be a JSON object, not {kwargs}")
    return verify_codec_main(env_id, arguments)


def picture(
    log_dir: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG_DIR")],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")] = None,
) -> int:
    """Draw the frontiers, starts, success and moves of a log_dir or a run folder.

    Args:
        log_dir: Where a curriculum or a run wrote its records.
        out: The PNG; LOG_DIR/frontier.png by default.
    """
    from scout_rl.curriculum import picture as drawing

    print(drawing.picture(log_dir, out))
    return 0
