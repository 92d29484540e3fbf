"""Binary success of an episode, from an info key or a function. A time-out alone is neither success nor failure."""

from __future__ import annotations

from typing import Any

from scout_rl.files.refusal import Refusal
from scout_rl.ladders.success import ARGUMENTS, Success, binary, check_success, source_of

__all__ = ["Success", "SuccessOnce"]


class SuccessOnce:
    """Whether any step of the episode was a success; the reset state does not count."""

    def __init__(self, success: Success) -> None:
        check_success(success)
        self.key = success if isinstance(success, str) else None
        self.function = None if isinstance(success, str) else success
        self._source = source_of(success)

    def missing(self, info: dict[str, Any]) -> Refusal:
        """The error for an episode in which no step had a success value."""
        if self.key is None:
            return Refusal("the success function returned None at every step of an episode; return True or False")
        return Refusal(
            f"no step of an episode had the success key {self.key!r} in its info (the last one has {sorted(info)}); "
            f"name another key, or pass a function: success=lambda {ARGUMENTS}: ..."
        )

    def binary(self, value: Any) -> bool:
        """Return True or False; refuse anything else (NaN, 0.3, a batch)."""
        return binary(value, self._source)
