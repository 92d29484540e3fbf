"""Success of a step: an info key, or a function of what ``step()`` returned.

A value must be True, False, 0 or 1. None counts as no success. NaN, 0.3 or a batch are an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from scout_rl.files.refusal import Refusal

Success = str | Callable[..., Any]
"""An info key, or ``f(observation, reward, terminated, truncated, info)``, called after every step."""

SuccessOf = Callable[[Any, float, bool, bool, dict[str, Any]], bool]
"""Success of one step from what it returned."""

SUCCESS_KEYS = ("is_success", "success")
"""Where environments commonly put their success indicator."""

ARGUMENTS = "observation, reward, terminated, truncated, info"


def binary(value: Any, source: str) -> bool:
    """True or False; a ``ValueError`` for other values. ``source`` begins its message: "info['x'] is"."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf" or array.item() not in (0, 1):
        raise Refusal(f"{source} {value!r}, but success must be boolean or 0/1")
    return bool(array.item())


def source_of(success: Success) -> str:
    """The ``source`` of a value for `binary`."""
    return f"info[{success!r}] is" if isinstance(success, str) else "the success function returned"


def check_success(success: Any) -> None:
    """Refuse what is neither an info key nor a function of the five values that ``step()`` returns."""
    if isinstance(success, str):
        return
    if not callable(success):
        raise Refusal(f"success is {success!r}, but must be an info key or a function of what step() returned")
    try:
        signature = inspect.signature(success)
    except (TypeError, ValueError):  # some C functions have no signature
        return
    try:
        signature.bind(*ARGUMENTS.split(", "))
    except TypeError:
        raise Refusal(f"the success function takes {signature}, but is called with ({ARGUMENTS})") from None


def success_reader(success: Success | None, env: Any) -> SuccessOf:
    """A function that reads success from a key of info, a function, or the usual keys. No key is an error."""
    if success is not None:
        check_success(success)
    if callable(success):
        return lambda *step: (value := success(*step)) is not None and binary(value, source_of(success))
    keys = SUCCESS_KEYS if success is None else (success,)

    def read(observation: Any, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]) -> bool:
        for key in keys:
            if key in info:
                return info[key] is not None and binary(info[key], source_of(key))
        raise Refusal(
            f"info of {type(env.unwrapped).__name__} has no {' or '.join(map(repr, keys))}: say what success is, "
            f"success=lambda {ARGUMENTS}: ..."
        )

    return read
