"""PLR cells: rank-prioritised teacher over all cells by mean absolute TD error (appendix, baseline table, row 9)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, namespace, order_of, running_max
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, check_shape, limited
from scout_rl.rules.sampling import floor_and_cap
from scout_rl.rules.statistics import Statistics, fold, init_statistics, observe, recency, tally
from scout_rl.rules.unpaced import BETA


class PlrState(NamedTuple):
    """Statistics, and the moving average of the signal per cell, ``[..., contexts, levels]``."""

    statistics: Statistics
    signal: Array


@dataclass(frozen=True, kw_only=True)
class Plr(Rule):
    """``(1-rho)*rank**(-1/beta) + rho*staleness`` over all cells, then SCOUT's floor and cap (over cells).

    Ours: the average starts at 0. Unvisited cells rank first. Tied cells share their mean rank. Staleness is
    proportional to the windows since a cell was last sampled, and uniform while that is 0 everywhere.
    """

    key: ClassVar[str] = "plr"

    alpha: float = limited(0.3, lambda alpha: 0 < alpha <= 1, "alpha is {}, but must be in (0, 1]")
    """Rate of the signal's average."""
    beta: float = limited(0.5, lambda beta: beta > 0, "the rank temperature beta is {}, but must be positive")
    """Rank temperature: the exponent is 1/beta."""
    rho: float = limited(0.1, lambda rho: 0 <= rho <= 1, "rho is {}, but must be in 0..1")
    """Share of the staleness distribution."""
    eps: float = limited(0.1, lambda eps: 0 <= eps <= 1, "the floor eps is {}, but must be in 0..1")
    """SCOUT's floor."""
    q_max: float = limited(0.5, lambda q_max: 0 < q_max <= 1, "the cap q_max is {}, but must be in (0, 1]")
    """SCOUT's cap."""

    needs_signal = True
    """The mean absolute TD error of the un-relabelled rollout."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> PlrState:
        """No cell visited."""
        check_shape(n_contexts, n_levels)
        return PlrState(init_statistics(n_contexts, n_levels), np.zeros((n_contexts, n_levels)))

    def distribution(self, state: PlrState) -> Array:
        """Over all cells as one axis."""
        shape = state.signal.shape
        flat = (*shape[:-2], -1)
        xp = namespace(state.signal)
        unvisited = state.statistics.evidence == 0
        weight = mean_rank(xp.where(unvisited, xp.inf, state.signal).reshape(flat)) ** (-1 / self.beta)
        c = cast(recency(state.statistics).reshape(flat), state.signal.dtype)
        c = xp.where(c.sum(axis=-1, keepdims=True) > 0, c, 1.0)
        p = (1 - self.rho) * _normalised(weight) + self.rho * _normalised(c)
        return floor_and_cap(p, self.eps, self.q_max).reshape(shape)

    def update(self, state: PlrState, outcomes: Outcomes) -> PlrState:
        """``u <- (1-alpha)*u + alpha*signal`` per outcome."""
        t = tally(outcomes, state.signal.shape)
        signal = fold(state.signal, t, outcomes.signal * self.alpha, 1.0 - self.alpha)
        return PlrState(observe(state.statistics, t, outcomes.success, BETA), signal)


def mean_rank(value: Array) -> Array:
    """Rank along the last axis, 1 for the largest; equal values share the mean of their ranks."""
    xp = namespace(value)
    n = value.shape[-1]
    order = order_of(-value)
    ordered = xp.take_along_axis(value, order, axis=-1)
    edge = xp.concatenate([xp.ones_like(ordered[..., :1], dtype=bool), ordered[..., 1:] != ordered[..., :-1]], axis=-1)
    position = xp.broadcast_to(xp.arange(n), ordered.shape)
    first = running_max(xp.where(edge, position, 0))
    closing = xp.concatenate([edge[..., 1:], xp.ones_like(edge[..., :1])], axis=-1)
    last = n - 1 - xp.flip(running_max(xp.flip(xp.where(closing, n - 1 - position, 0), axis=-1)), axis=-1)
    rank = cast(first + last, value.dtype) / 2 + 1
    return xp.take_along_axis(rank, order_of(order), axis=-1)


def _normalised(weight: Array) -> Array:
    return weight / weight.sum(axis=-1, keepdims=True)
