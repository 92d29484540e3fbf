"""B-SCOUT: a discounted Beta posterior (appendix, "Evidence-gated transition rules")."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import active, cast, namespace, scatter_set, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, Tests
from scout_rl.rules.incomplete_beta import incomplete_beta
from scout_rl.rules.rule import State, limited
from scout_rl.rules.scout import Scout
from scout_rl.rules.statistics import Statistics, Tally, fold


class BetaState(NamedTuple):
    """SCOUT's state, and per cell the discounted counts and their verdict, ``[..., contexts, levels]``."""

    statistics: Statistics
    frontier: Frontier
    signal: Array | None
    wins: Array
    trials: Array
    verdict: Array
    """-1 harder, 1 easier, 0 neither. Stored, because only cells with new outcomes can change theirs."""


@dataclass(frozen=True, kw_only=True)
class Beta(Scout):
    """SCOUT with its threshold tests on a Beta(1, 1) posterior over discounted counts.

    Harder if P(p >= tau_high) >= ``certainty``, easier if P(p <= tau_low) >= ``certainty``. Antistall also needs
    the discounted rate above ``tau_low``. Ours: gamma and certainty. The paper does not give them.
    """

    key: ClassVar[str] = "beta"

    gamma: float = limited(0.95, lambda gamma: 0 < gamma <= 1, "gamma is {}, but must be in (0, 1]")
    """Discount of the counts per outcome; 1 is the paper's undiscounted ablation."""
    certainty: float = limited(0.8, lambda certainty: 0.5 < certainty <= 1, "certainty is {}, but must be in (0.5, 1]")
    """Posterior probability that a test needs."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """SCOUT's start, with the uniform prior in every cell."""
        shape = (n_contexts, n_levels)
        statistics, frontier, signal = super().init(n_contexts, n_levels)
        counts = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int8)
        return BetaState(statistics, frontier, signal, *counts)

    def count(self, state: State, t: Tally, outcomes: Outcomes) -> State:
        """SCOUT's statistics, the discounted counts, and the verdicts of the cells with new outcomes."""
        wins = fold(state.wins, t, outcomes.success, self.gamma)
        trials = fold(state.trials, t, outcomes.success * 0 + 1, self.gamma)
        verdict = self._verdict(state.verdict, wins, trials, t.cell)
        return super().count(state, t, outcomes)._replace(wins=wins, trials=trials, verdict=verdict)

    def tests(self, state: State) -> Tests:
        """The stored verdicts."""
        here = active(state.frontier.level, state.wins.shape[-1])
        verdict = take(state.verdict, here)
        rate = take(state.wins, here) / namespace(state.wins).maximum(take(state.trials, here), 1.0)
        return Tests(
            take(state.statistics.evidence, here) >= self.n_min,
            verdict == -1,
            verdict == 1,
            rate > self.tau_low,
        )

    def basis(self, state: State, context: Array, level: Array) -> tuple[Array, Array]:
        """The discounted rate, and the outcomes so far."""
        rate = state.wins[context, level] / np.maximum(state.trials[context, level], 1.0)
        return rate, state.statistics.evidence[context, level]

    def _verdict(self, verdict: Array, wins: Array, trials: Array, cell: Array) -> Array:
        """Test the posterior of these cells at both thresholds."""
        xp = namespace(wins)
        w, m = take(wins, cell), take(trials, cell)
        a, b = 1 + w, 1 + xp.maximum(m - w, 0.0)
        harder = 1 - incomplete_beta(a, b, self.tau_high) >= self.certainty
        easier = incomplete_beta(a, b, self.tau_low) >= self.certainty
        new = cast(easier, xp.int8) - cast(harder, xp.int8)
        return scatter_set(verdict.reshape(-1), cell, new).reshape(verdict.shape)
