"""RFCL advance rule: at least 3 of the last 5 rollouts succeed; no retreat (appendix, baseline table, row 11)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import active, cast, namespace, scatter_set, segment_sum
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, FrontierRule, Tests, init_frontier
from scout_rl.rules.rule import check_shape, limited, require
from scout_rl.rules.statistics import Statistics, init_statistics, observe, tally
from scout_rl.rules.unpaced import BETA


class RfclState(NamedTuple):
    """Frontiers, and the latest outcomes at each frontier cell, ``[..., contexts]``."""

    statistics: Statistics
    frontier: Frontier
    history: Array
    """The last outcomes as bits, the newest lowest. After a move the next window clears them."""
    length: Array
    """How many outcomes ``history`` holds."""


@dataclass(frozen=True, kw_only=True)
class Rfcl(FrontierRule):
    """Advance iff at least ``needed`` of the last (up to) ``memory`` outcomes at the frontier cell succeeded.

    The context weight is ``(1 - s_hat) + 0.1``, where ``s_hat`` is the success rate of those outcomes, 0 if there are
    none. Ours: a move clears the outcomes, and outcomes of a cell that the frontier has left do not count.
    """

    key: ClassVar[str] = "rfcl"
    gate_constant = "needed"

    needed: int = 3
    memory: int = 5
    weight: float = limited(0.1, lambda weight: weight > 0, "weight is {}, but must be positive")
    """Added to ``1 - s_hat``: a solved context keeps this weight."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            1 <= self.needed <= self.memory <= 30,
            f"Rfcl: needed={self.needed} of memory={self.memory} must satisfy 1 <= needed <= memory <= 30",
        )

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> RfclState:
        """Every frontier at L, no outcomes."""
        check_shape(n_contexts, n_levels)
        statistics, frontier = init_statistics(n_contexts, n_levels), init_frontier(n_contexts, n_levels)
        return RfclState(statistics, frontier, np.zeros(n_contexts, np.int32), np.zeros(n_contexts, np.int32))

    def context_probabilities(self, state: RfclState) -> Array:
        """Contexts with less success get more."""
        rate = cast(self.successes(state), state.statistics.success.dtype)
        s_hat = rate / namespace(state.length).maximum(state.length, 1)
        weight = 1 - s_hat * (state.frontier.moved == 0) + self.weight
        return weight / weight.sum(axis=-1, keepdims=True)

    def observe(self, state: RfclState, outcomes: Outcomes) -> RfclState:
        """Shift the window's outcomes at the frontier cells into the history."""
        xp = namespace(state.history)
        shape = state.statistics.success.shape
        t = tally(outcomes, shape)
        success = cast(outcomes.success.reshape(-1)[t.order], xp.int32)
        bit = success << cast(xp.minimum(t.later, self.memory), xp.int32)
        bits = cast(segment_sum(bit, t.segment)[t.segment], xp.int32)
        blank = xp.zeros(int(np.prod(shape)), xp.int32)
        here = active(state.frontier.level, shape[-1])
        new = scatter_set(blank, t.cell, bits & ((1 << self.memory) - 1))[here]
        count = scatter_set(blank, t.cell, cast(t.count, xp.int32))[here]
        stayed = state.frontier.moved == 0
        history = (state.history * stayed) << xp.minimum(count, self.memory)
        return state._replace(
            statistics=observe(state.statistics, t, outcomes.success, BETA),
            history=(history | new) & ((1 << self.memory) - 1),
            length=xp.minimum(state.length * stayed + count, self.memory),
        )

    def tests(self, state: RfclState) -> Tests:
        """At least ``needed`` successes in the history."""
        return Tests(state.length >= self.needed, self.successes(state) >= self.needed, state.length < 0)

    def basis(self, state: RfclState, context: Array, level: Array) -> tuple[Array, Array]:
        """``s_hat`` at the last pass, and the number of the cell's outcomes."""
        s_hat = self.successes(state)[context] / np.maximum(state.length[context], 1)
        return s_hat, state.statistics.evidence[context, level]

    def successes(self, state: RfclState) -> Array:
        """Successes in the history."""
        xp = namespace(state.history)
        return ((state.history[..., None] >> xp.arange(self.memory, dtype=xp.int32)) & 1).sum(axis=-1)
