"""TP-SCOUT: Wilson bounds over discounted success counts (appendix, "Evidence-gated transition rules")."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import active, namespace, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, Tests
from scout_rl.rules.rule import State, limited
from scout_rl.rules.scout import Scout
from scout_rl.rules.statistics import Statistics, Tally, fold


class WilsonState(NamedTuple):
    """SCOUT's state, and per cell the discounted counts, ``[..., contexts, levels]``."""

    statistics: Statistics
    frontier: Frontier
    signal: Array | None
    wins: Array
    trials: Array


@dataclass(frozen=True, kw_only=True)
class Wilson(Scout):
    """SCOUT with its threshold tests on bounds: harder if lower >= tau_high, easier if upper <= tau_low.

    Antistall also needs the discounted rate above ``tau_low``. Sampling, evidence gate, cooldown and hysteresis are
    SCOUT's. Ours: the discount and z. The paper does not give them.
    """

    key: ClassVar[str] = "wilson"

    discount: float = limited(0.95, lambda discount: 0 < discount <= 1, "discount is {}, but must be in (0, 1]")
    """Discount of the counts per outcome."""
    z: float = limited(1.0, lambda z: z >= 0, "z is {}, but cannot be negative")
    """Width of the interval in standard deviations."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """SCOUT's start, no counts."""
        shape = (n_contexts, n_levels)
        statistics, frontier, signal = super().init(n_contexts, n_levels)
        return WilsonState(statistics, frontier, signal, np.zeros(shape), np.zeros(shape))

    def count(self, state: State, t: Tally, outcomes: Outcomes) -> State:
        """SCOUT's statistics, and the discounted counts."""
        wins = fold(state.wins, t, outcomes.success, self.discount)
        trials = fold(state.trials, t, outcomes.success * 0 + 1, self.discount)
        return super().count(state, t, outcomes)._replace(wins=wins, trials=trials)

    def tests(self, state: State) -> Tests:
        """Eq. 2's thresholds on the bounds."""
        here = active(state.frontier.level, state.wins.shape[-1])
        lower, upper, rate = wilson_bounds(take(state.wins, here), take(state.trials, here), self.z)
        return Tests(
            take(state.statistics.evidence, here) >= self.n_min,
            lower >= self.tau_high,
            upper <= self.tau_low,
            rate > self.tau_low,
        )

    def basis(self, state: State, context: Array, level: Array) -> tuple[Array, Array]:
        """The discounted rate, and the outcomes so far."""
        rate = state.wins[context, level] / np.maximum(state.trials[context, level], 1.0)
        return rate, state.statistics.evidence[context, level]


def wilson_bounds(wins: Array, trials: Array, z: float) -> tuple[Array, Array, Array]:
    """Return the Wilson score interval and the rate; (0, 1, 0) without trials. ``trials`` is 0 or at least 1."""
    xp = namespace(wins)
    m = xp.maximum(trials, 1.0)
    p = wins / m
    centre = p + z * z / (2 * m)
    half = z * xp.sqrt(xp.maximum(p * (1 - p), 0.0) / m + z * z / (4 * m * m))
    scale = 1 + z * z / m
    some = trials > 0
    return xp.where(some, (centre - half) / scale, 0.0), xp.where(some, (centre + half) / scale, 1.0), p
