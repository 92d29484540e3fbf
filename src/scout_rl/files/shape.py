"""Check that JSON from a file has the shape that its readers expect.

A shape is a type, ``[shape]`` for a list, or a dict of shapes by name. The name ``...`` stands for every name. A
missing name is not an error here.
"""

from __future__ import annotations

from types import UnionType
from typing import Any

from scout_rl.files.refusal import Refusal

WORDS = {
    dict: "a JSON object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
SHOWN = 40


def require_shape(value: Any, shape: Any, name: str = "it") -> None:
    """Refuse a value of another shape; ``name`` is what the refusal calls it."""
    kind: Any = shape if isinstance(shape, type | UnionType) else type(shape)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise Refusal(f"{name} is {str(value)[:SHOWN]!r}, but must be {WORDS.get(kind, kind)}")
    if isinstance(shape, list):
        for item in value:
            require_shape(item, shape[0], f"an entry of {name}")
    elif isinstance(shape, dict):
        for field in value if ... in shape else filter(value.__contains__, shape):
            require_shape(value[field], shape.get(field, shape.get(...)), f"{field!r} of {name}")
