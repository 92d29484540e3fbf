"""The result of a verification; its ``str()`` is a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scout_rl.codecs.compare import Difference


class Check(NamedTuple):
    """One check: ``result`` is pass, fail, note or skipped."""

    name: str
    result: str
    text: str


class Drift(NamedTuple):
    """How far a restored episode is from the uninterrupted one, at the restore and after it."""

    at_restore: Difference | None
    after: Difference | None
    steps: int

    def __str__(self) -> str:
        if self.at_restore is None and self.after is None:
            return f"none over {self.steps} steps"
        start = "none" if self.at_restore is None else str(self.at_restore).removeprefix("0/")
        after = "none" if self.after is None else f"step {self.after}"
        return f"at the restore {start}; in {self.steps} steps {after}"


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
        summary = "restores exactly" if self.ok else f"does NOT restore: {', '.join(self.failed)}"
        lines = [f"{self.env} ({self.codec}) {summary}"]
        lines += [f"  {c.result:<8}{c.name:<20}{c.text}" for c in self.checks]
        return "\n".join([*lines, f"  drift from the uninterrupted original: {self.drift}"])
