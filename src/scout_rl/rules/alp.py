"""ALP cells: learning-progress teacher over all cells, score |s - s_slow| (appendix, baseline table, row 10)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, check_shape, limited
from scout_rl.rules.sampling import floor_and_cap, softmax
from scout_rl.rules.statistics import Statistics, fold, init_statistics, observe, tally


class AlpState(NamedTuple):
    """Statistics, and the slow success average per cell, ``[..., contexts, levels]``."""

    statistics: Statistics
    s_slow: Array


@dataclass(frozen=True, kw_only=True)
class Alp(Rule):
    """Softmax of absolute learning progress over all cells, with SCOUT's temperature, floor and cap.

    Ours: the slow rate. The paper does not give it.
    """

    key: ClassVar[str] = "alp"

    beta: float = limited(0.2, lambda beta: 0 < beta <= 1, "the rate beta is {}, but must be in (0, 1]")
    """Rate of ``s``."""
    beta_slow: float = limited(
        0.05, lambda beta_slow: 0 < beta_slow <= 1, "the rate beta_slow is {}, but must be in (0, 1]"
    )
    """Rate of ``s_slow``."""
    tau: float = limited(0.5, lambda tau: tau > 0, "the temperature tau is {}, but must be positive")
    """SCOUT's temperature."""
    eps: float = limited(0.1, lambda eps: 0 <= eps <= 1, "the floor eps is {}, but must be in 0..1")
    """SCOUT's floor."""
    q_max: float = limited(0.5, lambda q_max: 0 < q_max <= 1, "the cap q_max is {}, but must be in (0, 1]")
    """SCOUT's cap."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> AlpState:
        """Both averages at 0."""
        check_shape(n_contexts, n_levels)
        return AlpState(init_statistics(n_contexts, n_levels), np.zeros((n_contexts, n_levels)))

    def distribution(self, state: AlpState) -> Array:
        """Over all cells as one axis."""
        progress = namespace(state.s_slow).abs(state.statistics.success - state.s_slow)
        p = softmax(progress.reshape(*progress.shape[:-2], -1), self.tau)
        return floor_and_cap(p, self.eps, self.q_max).reshape(progress.shape)

    def update(self, state: AlpState, outcomes: Outcomes) -> AlpState:
        """Update both averages with every outcome, in order."""
        t = tally(outcomes, state.s_slow.shape)
        s_slow = fold(
            state.s_slow, t, cast(outcomes.success, state.s_slow.dtype) * self.beta_slow, 1.0 - self.beta_slow
        )
        return AlpState(observe(state.statistics, t, outcomes.success, self.beta), s_slow)
