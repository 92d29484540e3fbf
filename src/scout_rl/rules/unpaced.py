"""Base of the rules without a frontier that draw contexts uniformly. They differ in their level distribution."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from scout_rl.rules.arrays import cast, namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, State, check_shape
from scout_rl.rules.statistics import Statistics, init_statistics, observe, tally

BETA = 0.2
"""Rate of the success average in reports; no rule here uses it."""


class UnpacedState(NamedTuple):
    """Statistics only: for the records and the window count."""

    statistics: Statistics


class UnpacedRule(Rule):
    """Uniform contexts that share one level distribution."""

    @abstractmethod
    def levels(self, state: State) -> Array:
        """Return the probability of every level, ``[..., levels]``."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """No evidence; labels are ignored."""
        check_shape(n_contexts, n_levels)
        return UnpacedState(init_statistics(n_contexts, n_levels))

    def distribution(self, state: State) -> Array:
        """The level distribution, divided evenly among contexts."""
        shape = state.statistics.success.shape
        levels = self.levels(state)[..., None, :] / shape[-2]
        return namespace(levels).broadcast_to(levels, shape)

    def update(self, state: State, outcomes: Outcomes) -> State:
        """Count the outcomes."""
        return UnpacedState(self.observe(state, outcomes))

    def observe(self, state: State, outcomes: Outcomes) -> Statistics:
        """The statistics with the window's outcomes."""
        t = tally(outcomes, state.statistics.success.shape)
        return observe(state.statistics, t, outcomes.success, BETA)


def one_level(state: State, level: Array) -> Array:
    """All probability at ``level`` (``[...]``): ``[..., levels]``."""
    success = state.statistics.success
    xp = namespace(success)
    return cast(xp.arange(success.shape[-1]) == level[..., None], success.dtype)
