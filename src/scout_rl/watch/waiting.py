"""What a context waits for, in words: how many outcomes, about how many windows, or which success."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from scout_rl.report.measure.stuck import Cells, Stuck, gate
from scout_rl.report.read.run import RunRecord
from scout_rl.watch.replay import Replay

RECENT = 200
"""A context's pace is that of its rollouts in the last windows."""


class Wait(NamedTuple):
    """What a context waits for."""

    text: str
    windows: int | None = None
    """About how many windows; None where nobody can say."""


NOTHING = Wait("waits for nothing: it trains from the target start")


class Waits:
    """The waits of one run; ``replay`` tells the rule's own words where it is up to date."""

    def __init__(self, run: RunRecord, counted: Cells, replay: Replay) -> None:
        self.run, self.counted = run, counted
        fresh = replay.done == run.about.windows
        self._rule: Any = replay.rule if fresh else None
        self._state = replay.state
        self._words = replay.words() if fresh else None
        self._chance = replay.chances().chance if fresh else None
        self._gate = gate(run)
        self._per_window = self._rates()

    def _rates(self) -> Any:
        """``[contexts]``: rollouts per window, as the rule would draw them next; else as it drew them lately."""
        run, about = self.run, self.run.about
        size = len(run.rollouts.context) / max(1, about.windows)
        if self._rule is not None:
            return self._rule.distribution(self._state).sum(axis=-1) * size
        recent = run.rollouts.window >= about.windows - RECENT
        drawn = np.bincount(run.rollouts.context[recent], minlength=about.n_contexts)
        return np.maximum(drawn, 0.5) / max(1, min(RECENT, about.windows))

    def outcomes(self, x: int, needed: int) -> Wait:
        """Needs so many more outcomes."""
        windows = math.ceil(needed / max(float(self._per_window[x]), 1e-9))
        plural = "s" if needed != 1 else ""
        return Wait(
            f"needs {needed} more outcome{plural}, about {windows:,} window{'s' if windows != 1 else ''}", windows
        )

    def of(self, x: int, stuck: Stuck | None = None) -> Wait:
        """What context ``x`` waits for."""
        run = self.run
        word = "" if self._words is None else self._words[x]
        tried = self.counted.tried[x]
        if not tried.any():
            return self.outcomes(x, 1)
        if run.frontier is None or not len(run.frontier):
            return Wait("waits for success at the target start: this rule has no frontier")
        level, easiest = int(run.frontier[-1, x]), run.about.n_levels - 1
        if word == "seldom drawn":
            return self.outcomes(x, 1)
        if word == "mastered" or (level == 0 and stuck is None):
            return NOTHING
        missing = self._gate - int(tried[level])
        if word == "gathering" or (not word and missing > 0):
            return self.outcomes(x, max(1, missing))
        if word in ("cooling", "advanced", "retreated", "probed"):
            return Wait("waits a few windows: it moved a moment ago")
        if word == "confirming":
            return Wait("needs the same verdict once more, in its next window", 1)
        now = self.counted.recent[x]
        if (stuck is not None and stuck.reason == "fails at the easiest") or word in (
            "easiest",
            "too hard at the easiest level",
        ):
            return Wait(f"waits for a first success at level {easiest}: there is no easier start")
        model = self._rule is not None and self._rule.evidence_gate is None
        if model and self._chance is not None:
            if level == 0:
                return Wait(f"waits for success at the target start: its chance is {self._chance[x, 0]:.2f} now")
            harder = self._chance[x, level - 1]
            return Wait(f"needs a chance of 0.50 at level {level - 1}: it is {harder:.2f} now")
        high = run.about.config.get("constants", {}).get("tau_high")
        share = f"{now[level]:.0%} of its last ten succeeded" if not np.isnan(now[level]) else "none was tried lately"
        wanted = f"success of {high:.2f}" if isinstance(high, float) else "more success"
        return Wait(f"needs {wanted} at level {level}: {share}")
