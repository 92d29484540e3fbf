"""What the rule knew after every window: its chances and its words, played again from the recorded outcomes.

Rules are pure functions, and records hold the rule's key and constants. So nothing more needs to be recorded. A rule
without a model, one of another version, or one that needs more than the records hold, gets a plain estimate instead:
the discounted success rate of each cell's own outcomes. Windows are replayed in order and once. A caller may stop after
some milliseconds and go on later.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.read.run import RunRecord
from scout_rl.report.read.statuses import WORDS, recorded_rule
from scout_rl.rules.cells import Outcomes
from scout_rl.rules.statistics import fold, tally

MODEL, RATE = "the rule's model", "discounted rate of each cell's outcomes"
KEEP = 0.9
"""The rate's weight of an outcome, per later outcome of the same cell."""
NEAR = 0.05
"""A chance this near to 0 or 1 teaches nothing."""
CELLS = 20_000
"""With more cells than this the counts are not taken after every window, but so seldom that they cost as much."""


class CellChance(NamedTuple):
    """Per cell ``[contexts, levels]``: the chance, and one standard error below and above."""

    chance: NDArray[np.float64]
    """NaN where nothing is known."""
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None


class Replay:
    """One run's replay, as far as it came. ``generation`` is that of the records it belongs to."""

    def __init__(self, run: RunRecord, generation: int = 0) -> None:
        about = run.about
        self.generation = generation
        self._shape = about.n_contexts, about.n_levels
        self._stride = max(1, about.n_contexts * about.n_levels // CELLS)
        rule = recorded_rule(run)
        if about.first > 0 or (about.rule == "group-frontier" and run.oracle_group is None):
            rule = None
        self._begin(rule, None if rule is None else rule.init(*self._shape, run.oracle_group))

    def _begin(self, rule: Any, state: Any) -> None:
        """Nothing is replayed yet. Without a rule there will be rates alone."""
        self.rule, self.state = rule, state
        """None where the rule itself cannot be replayed."""
        self.done = 0
        """Windows replayed."""
        self._modelled = rule is not None and rule.chance(state) is not None
        self._won, self._weight = np.zeros(self._shape), np.zeros(self._shape)
        self._counts: list[tuple[int, float, float, float]] = []
        self._wasted: list[float] = []
        self._dull = np.zeros(self._shape, bool)

    @property
    def source(self) -> str:
        """Where the chances come from."""
        return MODEL if self._modelled else RATE

    def advance(self, run: RunRecord, seconds: float = float("inf")) -> bool:
        """Replay what is new, for about this long; whether all is replayed."""
        deadline = time.thread_time() + seconds  # processor time: a busy machine gives less of it
        windows = run.about.windows
        if self.done >= windows:
            return True
        edges = np.searchsorted(run.rollouts.window, np.arange(windows + 1))
        while self.done < windows:
            part, n = slice(edges[self.done], edges[self.done + 1]), edges[self.done + 1] - edges[self.done]
            at = run.rollouts.context[part].astype(np.int64), run.rollouts.level[part].astype(np.int64)
            self._window(run, Outcomes(*at, run.rollouts.success[part], np.zeros(n), np.ones(n, bool)))
            if time.thread_time() > deadline:
                break
        return self.done >= windows

    def _window(self, run: RunRecord, outcomes: Outcomes) -> None:
        if self.rule is not None:
            self.state = self.rule.update(self.state, outcomes)
            if run.frontier is not None and not np.array_equal(self.rule.frontier(self.state), run.frontier[self.done]):
                self._begin(None, None)  # another version of the rule made these frontiers
                return
        n = len(outcomes.context)
        self._wasted.append(float(self._dull[outcomes.context, outcomes.level].mean()) if n else float("nan"))
        if not self._modelled and n:
            t = tally(outcomes, self._shape)
            self._won = fold(self._won, t, outcomes.success.astype(float), KEEP)
            self._weight = fold(self._weight, t, np.ones(n), KEEP)
        self.done += 1
        if self.done % self._stride == 0 or self.done == run.about.windows:
            self._count()

    def _count(self) -> None:
        chance = self.chances().chance
        unknown = np.isnan(chance)
        hard, mastered = chance <= NEAR, chance >= 1 - NEAR
        self._dull = hard | mastered
        cells = chance.size
        self._counts.append((self.done, hard.sum() / cells, mastered.sum() / cells, unknown.sum() / cells))

    def chances(self) -> CellChance:
        """What is known after the last window replayed."""
        if not self._modelled:
            rate = np.divide(self._won, self._weight, out=np.full(self._shape, np.nan), where=self._weight > 0)
            return CellChance(rate, None, None)
        chance, error = (np.asarray(part, np.float64) for part in self.rule.chance(self.state))
        logit = np.log(chance) - np.log1p(-chance)
        low, high = (1 / (1 + np.exp(-(logit + sign * error))) for sign in (-1, 1))
        return CellChance(chance, low, high)

    def words(self) -> list[str] | None:
        """The rule's word for every context after the last window replayed; None where it cannot be known."""
        status = self.statuses()
        return None if status is None else [WORDS[s] for s in status.tolist()]

    def statuses(self) -> NDArray[np.int8] | None:
        """The same as indices into ``WORDS``."""
        return None if self.rule is None or not self.done else self.rule.status(self.state)

    def teaching(self, at: NDArray[np.int64], first: int) -> dict[str, Any]:
        """Shares of cells after each of ``at`` windows, and of the rollouts since the one before."""
        reached = at[at - first <= self.done]
        counts = np.array(self._counts).reshape(-1, 4)
        pick = np.searchsorted(counts[:, 0], reached - first, side="right") - 1
        wasted = np.array(self._wasted)
        edges = np.concatenate(([0], reached - first))
        rollouts = [
            None if not (~np.isnan(part)).any() else round(float(np.nanmean(part)), 4)
            for part in (wasted[a:b] for a, b in itertools.pairwise(edges))
        ]
        shares = {
            name: [round(float(counts[i, column]), 4) if i >= 0 else None for i in pick]
            for name, column in (("too_hard", 1), ("mastered", 2), ("unknown", 3))
        }
        return {"source": self.source, "near": NEAR, "at": reached.tolist(), **shares, "rollouts": rollouts}
