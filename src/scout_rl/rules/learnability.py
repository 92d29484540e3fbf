"""SFL: train on the most learnable cells, those with the largest p(1-p).

Rutherford et al. 2024, "No Regrets: Investigating and Improving Regret Approximations for Curriculum Discovery"
(arXiv 2408.15099), and the constants of its public code.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, kth_largest, scatter_set, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, check_shape, limited
from scout_rl.rules.statistics import Statistics, fold, init_statistics, observe, tally
from scout_rl.rules.unpaced import BETA

TIE = 1e-5
"""Cells whose learnability is this close to the buffer's last are tied. Rounding then decides nothing."""


class LearnabilityState(NamedTuple):
    """Statistics, and per cell the discounted counts and the learnability, ``[..., contexts, levels]``."""

    statistics: Statistics
    wins: Array
    losses: Array
    learnability: Array
    """``p*(1-p)``. Stored, because only cells with new outcomes can change theirs."""


@dataclass(frozen=True, kw_only=True)
class Learnability(Rule):
    """``rho`` over the K cells with the largest p(1-p), the rest over all cells; uniform within both.

    The source estimates p with extra rollouts, every 50 to 100 updates. Ours: p comes from the training outcomes, and
    the K cells are chosen anew in every window. ``p = (1 + wins)/(2 + wins + losses)`` on discounted counts, so an
    unvisited cell has p = 1/2 and is tried first. Cells that tie for the last places share them.
    """

    key: ClassVar[str] = "learnability"

    rho: float = limited(0.5, lambda rho: 0 <= rho <= 1, "rho is {}, but must be in 0..1")
    """Share of the K cells. The source: 128 of 256 environments."""
    share: float = limited(0.04, lambda share: 0 < share <= 1, "share is {}, but must be in (0, 1]")
    """K as a share of all cells, at least one cell. The source keeps 1,000 of 25,000 levels in MiniGrid."""
    discount: float = limited(0.95, lambda discount: 0 < discount <= 1, "discount is {}, but must be in (0, 1]")
    """Discount of the counts per outcome. Ours, as in ``wilson``: about the last 20 outcomes count."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> LearnabilityState:
        """No outcomes: p = 1/2 everywhere."""
        check_shape(n_contexts, n_levels)
        shape = (n_contexts, n_levels)
        statistics = init_statistics(n_contexts, n_levels)
        return LearnabilityState(statistics, np.zeros(shape), np.zeros(shape), np.full(shape, 0.25))

    def distribution(self, state: LearnabilityState) -> Array:
        """Over all cells as one axis."""
        shape = state.learnability.shape
        score = state.learnability.reshape(*shape[:-2], -1)
        n_cells = score.shape[-1]
        K = max(1, round(self.share * n_cells))
        last = kth_largest(score, K)[..., None]
        above = score > last + TIE
        tied = (score >= last - TIE) & ~above
        places = cast(K - above.sum(axis=-1, keepdims=True), score.dtype) / tied.sum(axis=-1, keepdims=True)
        p = self.rho * (above + tied * places) / K + (1 - self.rho) / n_cells
        return cast(p.reshape(shape), score.dtype)

    def update(self, state: LearnabilityState, outcomes: Outcomes) -> LearnabilityState:
        """Count the outcomes, and score their cells again."""
        t = tally(outcomes, state.wins.shape)
        wins = fold(state.wins, t, outcomes.success, self.discount)
        losses = fold(state.losses, t, 1 - cast(outcomes.success, state.losses.dtype), self.discount)
        a, b = 1 + take(wins, t.cell), 1 + take(losses, t.cell)
        scored = scatter_set(state.learnability.reshape(-1), t.cell, a * b / (a + b) ** 2)
        statistics = observe(state.statistics, t, outcomes.success, BETA)
        return LearnabilityState(statistics, wins, losses, scored.reshape(wins.shape))
