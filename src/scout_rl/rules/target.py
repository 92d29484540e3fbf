"""Target-start training: every rollout at level 0 (appendix, baseline table, row 1)."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State
from scout_rl.rules.unpaced import UnpacedRule, one_level


@dataclass(frozen=True, kw_only=True)
class Target(UnpacedRule):
    """No scaffold. It has no constants."""

    key: ClassVar[str] = "target"

    def levels(self, state: State) -> Array:
        """Level 0 always."""
        return one_level(state, state.statistics.window * 0)
