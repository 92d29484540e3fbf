"""Asynchronous global mixture: level-0 mass grows with aggregate success (appendix, baseline table, row 6)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import limited, require
from scout_rl.rules.statistics import Statistics
from scout_rl.rules.unpaced import UnpacedRule


class MixtureState(NamedTuple):
    """Statistics, and the aggregate success average ``S``, ``[...]``."""

    statistics: Statistics
    S: Array


@dataclass(frozen=True, kw_only=True)
class Mixture(UnpacedRule):
    """``m = m_low + (m_high - m_low)*S`` at level 0, ``max(easy_floor, (1-m)/L)`` at level L, the rest evenly between.

    Ours: S is a moving average of the windows' mean success and starts at 0. A window without outcomes leaves it
    unchanged. With two levels the easiest gets ``1-m``.
    """

    key: ClassVar[str] = "mixture"

    rate: float = limited(0.05, lambda rate: 0 < rate <= 1, "rate is {}, but must be in (0, 1]")
    """Rate of ``S`` per window."""
    m_low: float = 0.1
    """Level-0 mass at S = 0."""
    m_high: float = 0.7
    """Level-0 mass at S = 1."""
    easy_floor: float = 0.2
    """Least mass of the easiest level."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 <= self.m_low <= self.m_high and self.m_high + self.easy_floor <= 1 and self.easy_floor >= 0,
            f"Mixture: masses m_low={self.m_low}, m_high={self.m_high}, easy_floor={self.easy_floor} do not fit into 1",
        )

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> MixtureState:
        """S = 0."""
        return MixtureState(super().init(n_contexts, n_levels).statistics, np.float64(0.0))

    def levels(self, state: MixtureState) -> Array:
        """The shared categorical over levels."""
        xp, L = namespace(state.S), state.statistics.success.shape[-1] - 1
        m = self.m_low + (self.m_high - self.m_low) * state.S
        easiest = xp.maximum(self.easy_floor, (1 - m) / L) if L > 1 else 1 - m
        between = (1 - m - easiest) / max(L - 1, 1)
        return xp.stack([m, *[between] * (L - 1), easiest], axis=-1)

    def update(self, state: MixtureState, outcomes: Outcomes) -> MixtureState:
        """One step of ``S`` with the window's mean success."""
        xp = namespace(outcomes.success)
        n = outcomes.valid.sum(axis=-1)
        mean = cast((outcomes.success * outcomes.valid).sum(axis=-1), state.S.dtype) / xp.maximum(n, 1)
        S = xp.where(n > 0, (1 - self.rate) * state.S + self.rate * mean, state.S)
        return MixtureState(self.observe(state, outcomes), S)
