"""Proposition 1, exactly: two contexts, two levels, budget K+1; every synchronized schedule fails one context.

Context a succeeds iff it had at least 1 assisted and at least K target-start episodes, context b iff it had at least K
assisted and at least 1 target-start episode (appendix, "The toy construction"). A synchronized schedule is a sequence
of K+1 levels that both contexts share. What a context needs depends on the counts alone, so the 2**(K+1) schedules fall
into K+2 classes; up to K = 16 they are also enumerated one by one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from scout_rl.rules.rule import require

ENUMERATED = 16


@dataclass(frozen=True)
class Proposition:
    """What the enumeration found for one K."""

    K: int
    schedules: int
    """Synchronized schedules looked at: all 2**(K+1)."""
    solving_both: int
    """How many of them solve both contexts."""
    solving_one: int
    local_solves_both: bool
    """Whether the context-local schedule (a: one assisted episode, b: K) solves both."""

    @property
    def holds(self) -> bool:
        """The proposition, for this K."""
        return self.solving_both == 0 and self.local_solves_both


def solves_a(assisted: int, K: int) -> bool:
    """Context a, after ``assisted`` of K+1 episodes with assistance."""
    return assisted >= 1 and (K + 1 - assisted) >= K


def solves_b(assisted: int, K: int) -> bool:
    """Context b, likewise."""
    return assisted >= K and (K + 1 - assisted) >= 1


def check_proposition(K: int) -> Proposition:
    """Go through every synchronized schedule of K+1 episodes."""
    require(K > 1, f"Proposition 1 is about K > 1, not K = {K}")
    if K <= ENUMERATED:
        counts = [sum(schedule) for schedule in itertools.product((0, 1), repeat=K + 1)]
        weighted = [(assisted, 1) for assisted in counts]
    else:
        weighted = [(assisted, math.comb(K + 1, assisted)) for assisted in range(K + 2)]
    total = both = one = 0
    for assisted, schedules in weighted:
        a, b = solves_a(assisted, K), solves_b(assisted, K)
        total += schedules
        both += schedules * (a and b)
        one += schedules * (a != b)
    return Proposition(K, total, both, one, solves_a(1, K) and solves_b(K, K))
