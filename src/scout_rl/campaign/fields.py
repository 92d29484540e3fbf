"""The fields of a `RunConfig` as a campaign file may set them: types checked by name, ``{seed}`` and others filled."""

from __future__ import annotations

from typing import Any

from scout_rl.field_types import field_types as types_of
from scout_rl.field_types import require_types
from scout_rl.run_config import RunConfig


def field_types() -> dict[str, Any]:
    """Every field with its type, whatever fields this version has."""
    return types_of(RunConfig)


def check_fields(given: dict[str, Any]) -> None:
    """Refuse a value of the wrong type, naming its key."""
    require_types(RunConfig, given)


def filled(given: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Strings with ``{out}``, ``{setting}``, ``{rule}`` and ``{seed}`` replaced."""
    try:
        return {k: v.format(**words) if isinstance(v, str) and "{" in v else v for k, v in given.items()}
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"a value names {error} in braces; there are {', '.join(words)}") from error
