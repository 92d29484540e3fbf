"""Binary success of an episode, from an info key or a function. A time-out says nothing about success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Success = str | Callable[..., Any]
"""An info key, or ``f(observation, reward, terminated, truncated, info)``, called after every step."""


class SuccessOnce:
    """Whether any step of the episode was a success; the reset state does not count."""

    def __init__(self, success: Success) -> None:
        if not (isinstance(success, str) or callable(success)):
            raise ValueError(f"success is {success!r}, but must be an info key or a function of what step() returned")
        self.key = success if isinstance(success, str) else None
        self.function = None if isinstance(success, str) else success

    def missing(self, info: dict[str, Any]) -> ValueError:
        """The error for an episode in which no step said whether it succeeded."""
        if self.key is None:
            return ValueError("the success function returned None at every step of an episode; return True or False")
        return ValueError(
            f"no step of an episode had the success key {self.key!r} in its info (the last one has {sorted(info)}); "
            f"name another key, or pass a function: success=lambda observation, reward, terminated, truncated, "
            f"info: ..."
        )

    def binary(self, value: Any) -> bool:
        """Return True or False; refuse what is neither (NaN, 0.3, a batch)."""
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biuf" or array.item() not in (0, 1):
            name = "the success function returned" if self.key is None else f"info[{self.key!r}] is"
            raise ValueError(f"{name} {value!r}, but success must be boolean or 0/1")
        return bool(array.item())
