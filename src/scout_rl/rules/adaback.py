"""AdaBack: a stochastic binary search for the least assistance at which each context succeeds.

Amani et al. 2025, "RL for Reasoning by Adaptively Revealing Rationales" (arXiv 2506.18110). The constants are those of
public code that matches it; whose code that is, we do not know.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, largest, namespace, rows, scatter_set, search, segment_sum, smallest
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, check_shape, limited
from scout_rl.rules.statistics import Statistics, Tally, init_statistics, observe, recency, tally
from scout_rl.rules.unpaced import BETA


class AdaBackState(NamedTuple):
    """Statistics, every context's interval of levels, and the average interval."""

    statistics: Statistics
    low: Array
    """``[..., contexts]``: the easiest level that failed since the last success, else 0."""
    high: Array
    """``[..., contexts]``: the hardest level that succeeded so far, else L."""
    mean_low: Array
    """``[...]``: average over the contexts of recent windows; for contexts without outcomes."""
    mean_high: Array


@dataclass(frozen=True, kw_only=True)
class AdaBack(Rule):
    """The level is uniform over ``low..high``; failure raises ``low`` to its level, success lowers ``high`` to its own.

    Success also resets ``low`` to 0. ``high`` never rises. Contexts without outcomes have the average interval. The
    source reveals a portion of a rationale. Ours: level/L is that portion, and level L its largest, 0.9. The source
    tries one portion with several rollouts. Ours: a level's rollouts of one window are averaged, and all levels of the
    window count: the hardest success, then the easiest failure below it. Levels above ``high`` do not count.
    """

    key: ClassVar[str] = "adaback"

    tau: float = limited(0.5, lambda tau: 0 < tau <= 1, "the threshold tau is {}, but must be in (0, 1]")
    """Mean success from which a level counts as a success."""
    rate: float = limited(0.2, lambda rate: 0 < rate <= 1, "rate is {}, but must be in (0, 1]")
    """Rate of the average interval per window."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> AdaBackState:
        """All levels."""
        check_shape(n_contexts, n_levels)
        low, high = np.zeros(n_contexts, np.int8), np.full(n_contexts, n_levels - 1, np.int8)
        statistics = init_statistics(n_contexts, n_levels)
        return AdaBackState(statistics, low, high, np.float64(0), np.float64(n_levels - 1))

    def distribution(self, state: AdaBackState) -> Array:
        """Uniform contexts. Level l has the part of ``low-1/2..high+1/2`` that is nearest to it."""
        like = state.statistics.success
        xp, seen = namespace(like), (state.statistics.evidence > 0).any(axis=-1)
        low = cast(xp.where(seen, state.low, state.mean_low[..., None]), like.dtype)[..., None]
        high = cast(xp.where(seen, state.high, state.mean_high[..., None]), like.dtype)[..., None]
        level = xp.arange(like.shape[-1], dtype=like.dtype)
        part = xp.maximum(xp.minimum(level, high) - xp.maximum(level, low) + 1, 0)
        return part / part.sum(axis=-1, keepdims=True) / like.shape[-2]

    def update(self, state: AdaBackState, outcomes: Outcomes) -> AdaBackState:
        """Move the intervals of the contexts with outcomes, then their average."""
        t = tally(outcomes, state.statistics.success.shape)
        statistics = observe(state.statistics, t, outcomes.success, BETA)
        low, high = self._intervals(state, t, outcomes.success)
        touched = (recency(statistics) == 0).any(axis=-1)
        mean_low = self._average(state.mean_low, low, touched)
        return AdaBackState(statistics, low, high, mean_low, self._average(state.mean_high, high, touched))

    def _intervals(self, state: AdaBackState, t: Tally, success: Array) -> tuple[Array, Array]:
        """The new intervals. One row of ``[outcomes, levels]`` per context with outcomes says which levels passed."""
        xp, like = namespace(success), state.statistics.success
        n_levels, level = like.shape[-1], xp.arange(like.shape[-1])
        context = t.cell // n_levels
        row = search(context, context, "left")
        wins = segment_sum(cast(success.reshape(-1)[t.order], like.dtype), t.segment)[t.segment]
        blank, place = xp.zeros(len(row) * n_levels, bool), row * n_levels + t.cell % n_levels
        passed = scatter_set(blank, place, wins >= self.tau * t.count).reshape(-1, n_levels)[row]
        failed = scatter_set(blank, place, wins < self.tau * t.count).reshape(-1, n_levels)[row]
        old_low, old_high = (rows(bound.reshape(-1), context)[:, None] for bound in (state.low, state.high))
        passed = passed & (level <= old_high)
        high = xp.minimum(old_high[:, 0], smallest(xp.where(passed, level, n_levels)))
        easiest = largest(xp.where(failed & (level <= high[:, None]), level, 0))
        low = xp.maximum(xp.where(passed.any(axis=-1), 0, old_low[:, 0]), easiest)
        return (
            scatter_set(state.low.reshape(-1), context, cast(low, state.low.dtype)).reshape(state.low.shape),
            scatter_set(state.high.reshape(-1), context, cast(high, state.high.dtype)).reshape(state.high.shape),
        )

    def _average(self, mean: Array, bound: Array, touched: Array) -> Array:
        """One step of a moving average, over the contexts of this window."""
        xp, n = namespace(bound), touched.sum(axis=-1)
        window = cast((bound * touched).sum(axis=-1), mean.dtype) / xp.maximum(n, 1)
        return xp.where(n > 0, (1 - self.rate) * mean + self.rate * window, mean)
