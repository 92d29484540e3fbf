"""The result of a verification; its ``str()`` is a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scout_rl.codecs.compare import Difference
from scout_rl.codecs.wording import brief

LONGEST = 400
"""Characters of a check's text in the report."""


class Check(NamedTuple):
    """One check: ``result`` is pass, fail, note or skipped."""

    name: str
    result: str
    text: str


class Drift(NamedTuple):
    """How far a restored episode is from the uninterrupted one, at the restore and after it.

    Restores of one state can be equal to each other and still differ from it: some simulators compute a part of the
    observation anew.
    """

    at_restore: Difference | None
    after: Difference | None
    steps: int

    def __str__(self) -> str:
        if self.at_restore is None and self.after is None:
            return f"equal in {self.steps} steps"
        start, after = self.at_restore, self.after
        first = "its first observation is equal" if start is None else f"at the restore {str(start).removeprefix('0/')}"
        later = "equal" if after is None else f"at most step {after}"
        return f"{first}; in the next {self.steps} steps {later}"


@dataclass(frozen=True)
class Verdict:
    """What ``verify_codec`` returns."""

    env: str
    codec: str
    checks: tuple[Check, ...]
    drift: Drift

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(check.name for check in self.checks if check.result == "fail")

    def check(self, name: str) -> Check:
        """The check of that name."""
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        summary = "restores exactly: the same each time" if self.ok else f"does NOT restore: {', '.join(self.failed)}"
        lines = [f"{self.env} ({self.codec}) {summary}"]
        lines += [f"  {c.result:<8}{c.name:<20}{brief(c.text, LONGEST)}" for c in self.checks]
        return "\n".join([*lines, f"  compared with the uninterrupted episode: {self.drift}"])
