"""RFCL-style local frontier: SCOUT's transition, uniform contexts, antistall off (appendix, baseline table, row 7)."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State, limited
from scout_rl.rules.sampling import uniform
from scout_rl.rules.scout import Scout


@dataclass(frozen=True, kw_only=True)
class LocalFrontier(Scout):
    """SCOUT without calibrated sampling and antistall; it still retreats."""

    key: ClassVar[str] = "local-frontier"

    N_stale: int = limited(
        0, lambda N_stale: N_stale >= 0, "N_stale is {}; 0 turns antistall off, negative is meaningless"
    )
    """Antistall off."""

    def context_probabilities(self, state: State) -> Array:
        """Uniform."""
        return uniform(state.statistics.success[..., 0])
