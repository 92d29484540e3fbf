"""ACED-style advance: threshold-triggered, no retreat, uniform contexts (appendix, baseline table, row 12)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import active, namespace, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, FrontierRule, Tests, init_frontier
from scout_rl.rules.rule import check_shape, limited
from scout_rl.rules.sampling import uniform
from scout_rl.rules.statistics import Statistics, fold, init_statistics, observe, tally
from scout_rl.rules.unpaced import BETA


class AcedState(NamedTuple):
    """Frontiers, and each cell's successes so far, ``[..., contexts, levels]``."""

    statistics: Statistics
    frontier: Frontier
    successes: Array


@dataclass(frozen=True, kw_only=True)
class Aced(FrontierRule):
    """Advance when the frontier cell's running rate is at least ``tau_high`` on at least ``n_min`` outcomes.

    The running rate is the cumulative mean of the cell's outcomes (component map of the appendix). No cooldown,
    no hysteresis.
    """

    key: ClassVar[str] = "aced"
    gate_constant = "n_min"

    tau_high: float = limited(0.8, lambda tau_high: 0 < tau_high <= 1, "tau_high is {}, but must be in (0, 1]")
    """SCOUT's."""
    n_min: int = limited(15, lambda n_min: n_min >= 1, "n_min is {}, but a move needs at least one outcome")
    """SCOUT's (ours: the paper names only the threshold)."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> AcedState:
        """Every frontier at L, no outcomes."""
        check_shape(n_contexts, n_levels)
        statistics, frontier = init_statistics(n_contexts, n_levels), init_frontier(n_contexts, n_levels)
        return AcedState(statistics, frontier, np.zeros((n_contexts, n_levels)))

    def context_probabilities(self, state: AcedState) -> Array:
        """Uniform."""
        return uniform(state.successes[..., 0])

    def observe(self, state: AcedState, outcomes: Outcomes) -> AcedState:
        """Count outcomes and successes."""
        t = tally(outcomes, state.successes.shape)
        return state._replace(
            statistics=observe(state.statistics, t, outcomes.success, BETA),
            successes=fold(state.successes, t, outcomes.success, 1.0),
        )

    def tests(self, state: AcedState) -> Tests:
        """The running rate against the threshold."""
        here = active(state.frontier.level, state.successes.shape[-1])
        n = take(state.statistics.evidence, here)
        rate = take(state.successes, here) / namespace(n).maximum(n, 1)
        return Tests(n >= self.n_min, rate >= self.tau_high, n < 0)

    def basis(self, state: AcedState, context: Array, level: Array) -> tuple[Array, Array]:
        """The running rate."""
        n = state.statistics.evidence[context, level]
        return state.successes[context, level] / np.maximum(n, 1), n
