"""What success is: an info key or a function of what ``step()`` returned, read in one way everywhere.

A value is a success or none: True, False, 0 or 1. NaN, 0.3 or a batch are an error. None says nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

Success = str | Callable[..., Any]
"""An info key, or ``f(observation, reward, terminated, truncated, info)``, called after every step."""

SuccessOf = Callable[[Any, float, bool, bool, dict[str, Any]], bool]
"""Success of one step from what it returned."""

SUCCESS_KEYS = ("is_success", "success")
"""Where environments commonly put their success indicator."""

ARGUMENTS = "observation, reward, terminated, truncated, info"


def binary(value: Any, source: str) -> bool:
    """True or False; a ``ValueError`` for what is neither. ``source`` says whose value it is: "info['x'] is"."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf" or array.item() not in (0, 1):
        raise ValueError(f"{source} {value!r}, but success must be boolean or 0/1")
    return bool(array.item())


def source_of(success: Success) -> str:
    """How an error calls a value that was read so."""
    return f"info[{success!r}] is" if isinstance(success, str) else "the success function returned"


def check_success(success: Any) -> None:
    """Refuse what is neither an info key nor a function of the five things that ``step()`` returns."""
    if isinstance(success, str):
        return
    if not callable(success):
        raise ValueError(f"success is {success!r}, but must be an info key or a function of what step() returned")
    try:
        signature = inspect.signature(success)
    except (TypeError, ValueError):  # some functions of C have none: the call will tell
        return
    try:
        signature.bind(*ARGUMENTS.split(", "))
    except TypeError:
        raise ValueError(f"the success function takes {signature}, but is called with ({ARGUMENTS})") from None


def success_reader(success: Success | None, env: Any) -> SuccessOf:
    """How to read success: a key of info, a function, or one of the usual keys; missing is an error."""
    if success is not None:
        check_success(success)
    if callable(success):
        return lambda *step: (value := success(*step)) is not None and binary(value, source_of(success))
    keys = SUCCESS_KEYS if success is None else (success,)

    def read(observation: Any, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]) -> bool:
        for key in keys:
            if key in info:
                return info[key] is not None and binary(info[key], source_of(key))
        raise ValueError(
            f"info of {type(env.unwrapped).__name__} has no {' or '.join(map(repr, keys))}: say what success is, "
            f"success=lambda {ARGUMENTS}: ..."
        )

    return read
