"""Global annealing: one shared schedule from L down to 0 (appendix, baseline table, row 4)."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.arrays import namespace
from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State, limited
from scout_rl.rules.unpaced import UnpacedRule, one_level


@dataclass(frozen=True, kw_only=True)
class Anneal(UnpacedRule):
    """``l(t) = round(L * max(0, 1 - t/T_anneal))``, t = windows closed so far.

    Ours: halves round to even, as in Python's and NumPy's ``round``. It is computed in whole numbers, so that 32-bit
    floats cannot shift a step by a window.
    """

    key: ClassVar[str] = "anneal"

    T_anneal: int = limited(
        2000, lambda T_anneal: 1 <= T_anneal <= 1e9, "T_anneal is {}, but a schedule has 1 to 1e9 windows"
    )
    """Windows until level 0; the paper's 2000 of 2400 on the constructed conflict, 3000 of 6000 on Meta-World."""

    def levels(self, state: State) -> Array:
        """The shared level."""
        return one_level(state, self.level(state))

    def level(self, state: State) -> Array:
        """``l(t)`` exactly: L*(T-t) divided by T, halves rounded to even."""
        t, L = state.statistics.window, state.statistics.success.shape[-1] - 1
        T, xp = self.T_anneal, namespace(t)
        whole, rest = xp.divmod(L * xp.maximum(T - t, 0), T)
        return whole + ((2 * rest > T) | ((2 * rest == T) & (whole % 2 == 1)))
