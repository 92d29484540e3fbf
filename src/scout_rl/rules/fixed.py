"""Fixed scaffold level: every rollout at one constant level (appendix, baseline table, row 2, "fixed mid")."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State, require
from scout_rl.rules.unpaced import UnpacedRule, one_level


@dataclass(frozen=True, kw_only=True)
class Fixed(UnpacedRule):
    """The paper's strongest constant is level 2 of 0..4."""

    key: ClassVar[str] = "fixed"

    level: int = 2
    """``l``."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """Refuse a level that the ladder does not have."""
        require(0 <= self.level < n_levels, f"Fixed: level {self.level} is not on a ladder of {n_levels} levels")
        return super().init(n_contexts, n_levels, oracle_group)

    def levels(self, state: State) -> Array:
        """Always ``l``."""
        return one_level(state, state.statistics.window * 0 + self.level)
