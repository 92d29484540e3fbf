"""SCOUT: one frontier per context (paper, Method, Eq. 1 and 2; constants: appendix, "Frozen controller constants")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import active, cast, namespace, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, FrontierRule, Tests, init_frontier
from scout_rl.rules.rule import State, check_shape, limited, require
from scout_rl.rules.sampling import floor_and_cap, softmax
from scout_rl.rules.statistics import Statistics, Tally, fold, init_statistics, observe, tally


class ScoutState(NamedTuple):
    """What SCOUT remembers: about 90 bytes per context at five levels."""

    statistics: Statistics
    frontier: Frontier
    signal: Array | None
    """``u``: moving average of the learner's signal per cell; None while ``lambda_u`` is 0."""


@dataclass(frozen=True, kw_only=True)
class Scout(FrontierRule):
    """The published rule. docs/rules.md lists departures, and choices that the paper leaves open.

    Ours: ``s`` starts at 0. ``n`` counts all outcomes and does not decay. Recency grows on inactive cells too.
    A move is marked antistall by the window in which it happens. As in the paper, the clocks count windows, not
    outcomes: with many contexts antistall can fire before a new outcome comes.
    """

    key: ClassVar[str] = "scout"
    gate_constant = "n_min"

    lambda_h: float = 1.0
    """Weight of intermediate competence, ``s*(1-s)``."""
    lambda_p: float = 0.2
    """Weight of progress toward the target start, ``(L-f)/L``."""
    lambda_stale: float = 0.1
    """Weight of cells not sampled recently, ``log(1+c)``."""
    lambda_u: float = 0.0
    """Weight of the learner's signal (the paper's negative ablation: critic disagreement)."""
    tau: float = limited(0.5, lambda tau: tau > 0, "the temperature tau is {}, but must be positive")
    """Softmax temperature."""
    eps: float = limited(0.1, lambda eps: 0 <= eps <= 1, "the floor eps is {}, but must be in 0..1")
    """Uniform exploration floor over contexts."""
    q_max: float = limited(0.5, lambda q_max: 0 < q_max <= 1, "the cap q_max is {}, but must be in (0, 1]")
    """Cap on one cell's probability."""
    tau_low: float = 0.15
    """At or below it: restore assistance."""
    tau_high: float = 0.8
    """At or above it: remove assistance."""
    n_min: int = limited(15, lambda n_min: n_min >= 1, "n_min is {}, but a move needs at least one outcome")
    """Outcomes a cell needs before its frontier may move."""
    cooldown: int = limited(3, lambda cooldown: 0 <= cooldown <= 30000, "cooldown is {}, but must be in 0..30000")
    """Windows after a move in which the context is not eligible."""
    N_stale: int = limited(
        4, lambda N_stale: N_stale >= 0, "N_stale is {}; 0 turns antistall off, negative is meaningless"
    )
    """Eligible windows without a move until antistall probes a harder level; 0 turns it off."""
    beta: float = limited(0.2, lambda beta: 0 < beta <= 1, "the rate beta is {}, but must be in (0, 1]")
    """Rate of the success average."""
    hysteresis: int = limited(2, lambda hysteresis: 1 <= hysteresis <= 100, "hysteresis is {}, but must be in 1..100")
    """Consecutive eligible windows that must agree on a direction."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 <= self.tau_low < self.tau_high <= 1,
            f"{type(self).__name__}: thresholds tau_low={self.tau_low}, tau_high={self.tau_high} must be ordered "
            "within 0..1",
        )

    @property
    def needs_signal(self) -> bool:
        """Only the critic-uncertainty ablation uses the signal."""
        return self.lambda_u != 0.0

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """Every frontier at L, no evidence. ``oracle_group`` is ignored: SCOUT sees no labels."""
        check_shape(n_contexts, n_levels)
        signal = np.zeros((n_contexts, n_levels)) if self.needs_signal else None
        return ScoutState(init_statistics(n_contexts, n_levels), init_frontier(n_contexts, n_levels), signal)

    def context_probabilities(self, state: State) -> Array:
        """Eq. 1 over the active cells, softmax, floor, cap."""
        return floor_and_cap(softmax(self.score(state), self.tau), self.eps, self.q_max)

    def score(self, state: State) -> Array:
        """Eq. 1: ``[..., contexts]``."""
        f, L = state.frontier.level, state.statistics.success.shape[-1] - 1
        here = active(f, L + 1)
        s = take(state.statistics.success, here)
        c = state.statistics.window[..., None] - take(state.statistics.last, here)
        log_recency = namespace(s).log1p(cast(c, s.dtype))
        score = (
            self.lambda_h * s * (1 - s) + (self.lambda_p / L) * cast(L - f, s.dtype) + self.lambda_stale * log_recency
        )
        if state.signal is not None:
            score = score + self.lambda_u * take(state.signal, here)
        return score

    def observe(self, state: State, outcomes: Outcomes) -> State:
        """Update ``s``, ``n`` and recency of the outcomes' cells, even where the frontier has moved on."""
        return self.count(state, tally(outcomes, state.statistics.success.shape), outcomes)

    def count(self, state: State, t: Tally, outcomes: Outcomes) -> State:
        """The same for outcomes sorted by cell."""
        signal = state.signal
        if signal is not None:
            signal = fold(signal, t, outcomes.signal * self.beta, 1.0 - self.beta)
        statistics = observe(state.statistics, t, outcomes.success, self.beta)
        return state._replace(statistics=statistics, signal=signal)

    def tests(self, state: State) -> Tests:
        """Eq. 2's thresholds on the success average."""
        here = active(state.frontier.level, state.statistics.success.shape[-1])
        s, n = take(state.statistics.success, here), take(state.statistics.evidence, here)
        return Tests(n >= self.n_min, s >= self.tau_high, s <= self.tau_low)
