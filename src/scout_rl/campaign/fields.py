"""The fields of a `RunConfig` as a campaign file may set them: types checked by name, ``{seed}`` and others filled."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any

from scout_rl.run_config import RunConfig


@cache
def field_types() -> dict[str, Any]:
    """Every field with its type, whatever fields this version has."""
    hints = typing.get_type_hints(RunConfig)
    return {field.name: hints[field.name] for field in dataclasses.fields(RunConfig)}


def check_fields(given: dict[str, Any]) -> None:
    """Refuse a value of the wrong type, naming its key."""
    for key, value in given.items():
        if not _fits(value, field_types()[key]):
            raise ValueError(f"{key!r} is {value!r}, but must be {_words(field_types()[key])}")


def _fits(value: Any, wanted: Any) -> bool:
    origin, choices = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Literal:
        return value in choices
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, choice) for choice in choices)
    if wanted in (int, float):
        return isinstance(value, int if wanted is int else int | float) and not isinstance(value, bool)
    kind = origin or wanted
    return not isinstance(kind, type) or isinstance(value, kind)


def filled(given: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Strings with ``{out}``, ``{setting}``, ``{rule}`` and ``{seed}`` replaced."""
    try:
        return {k: v.format(**words) if isinstance(v, str) and "{" in v else v for k, v in given.items()}
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"a value names {error} in braces; there are {', '.join(words)}") from error


def _words(wanted: Any) -> str:
    if typing.get_origin(wanted) is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(wanted)))}"
    kind = typing.get_origin(wanted) or wanted
    names = {int: "a whole number", float: "a number", str: "a text", dict: "a table", bool: "true or false"}
    return names.get(kind, str(wanted))
