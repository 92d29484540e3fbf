"""Check values from outside (files, the command line, a user's dict) against the field types of a dataclass."""

from __future__ import annotations

import dataclasses
import numbers
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from scout_rl.files.refusal import Refusal


@cache
def field_types(kind: type) -> dict[str, Any]:
    """Every field of a dataclass with its type."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def require_types(kind: type, values: Mapping[str, Any], owner: str = "") -> None:
    """Refuse a value of the wrong type and name its field. Names that are no fields are not checked."""
    known = field_types(kind)
    for name, value in values.items():
        if name in known and not _fits(value, known[name]):
            whose = f"{owner}: " if owner else ""
            raise Refusal(f"{whose}{name!r} is {value!r}, but must be {_words(known[name])}")


def _fits(value: Any, wanted: Any) -> bool:
    origin, choices = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Literal:
        return value in choices
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, choice) for choice in choices)
    if wanted in (int, float):
        return isinstance(value, numbers.Integral if wanted is int else numbers.Real) and not isinstance(value, bool)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_fits(item, choices[0]) for item in value)
    kind = origin or wanted
    return not isinstance(kind, type) or isinstance(value, kind)


def _words(wanted: Any) -> str:
    if typing.get_origin(wanted) is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(wanted)))}"
    if isinstance(wanted, types.UnionType):
        return " or ".join(_words(choice) for choice in typing.get_args(wanted))
    kind = typing.get_origin(wanted) or wanted
    names = {
        int: "a whole number",
        float: "a number",
        str: "a text",
        dict: "a table",
        bool: "true or false",
        tuple: "a list of numbers",
        types.NoneType: "nothing",
    }
    return names.get(kind, str(wanted))
