"""Random scaffold sampling: level uniform over 0..L, independent of competence (appendix, baseline table, row 3)."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State
from scout_rl.rules.sampling import uniform
from scout_rl.rules.unpaced import UnpacedRule


@dataclass(frozen=True, kw_only=True)
class Random(UnpacedRule):
    """``l ~ Unif{0..L}`` for every rollout. It has no constants."""

    key: ClassVar[str] = "random"

    def levels(self, state: State) -> Array:
        """Uniform."""
        return uniform(state.statistics.success[..., 0, :])
