"""Facts about settings that records do not hold. The caller passes them in; a report on other runs needs none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Printed(NamedTuple):
    """What a paper prints: a number, or a sentence."""

    text: str
    source: str
    """Its table or section."""


@dataclass(frozen=True)
class KnownSetting:
    """A setting's own learner, budget and bank, and what a paper prints about it."""

    learner: str
    windows: int
    """The budget."""
    episodes: int
    """Rollouts per window."""
    schedule_share: float
    """Share of the budget that a shared schedule runs over."""
    bank_sha256: str
    presets: Mapping[tuple[str, str], Mapping[str, Any]]
    """(algorithm, preset) -> the learner's constants that the preset changes."""
    by_mean: bool = False
    """Whether AUC is averaged over seeds by the mean; else by the median."""
    printed: Mapping[tuple[str, str, str, int], Printed] = field(default_factory=dict)
    """(rule, metric, ladder, levels) -> what a paper prints."""

    def schedule(self, windows: int) -> int:
        """Length of a shared schedule in a run of ``windows``."""
        return max(1, round(self.schedule_share * (windows or self.windows)))


Catalogue = Mapping[str, KnownSetting]
"""Setting -> its facts."""
