"""Proposition 1: with two contexts, two levels and budget K+1, every synchronized schedule fails one context.

Context a succeeds iff it had at least 1 assisted and at least K target-start episodes, context b iff it had at least K
assisted and at least 1 target-start episode (appendix, "The toy construction"). A synchronized schedule is a sequence
of K+1 levels that both contexts share. Success depends only on the counts, so the 2**(K+1) schedules fall into K+2
classes. Up to K = 16 the schedules are enumerated one by one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from scout_rl.rules.rule import require

ENUMERATED = 16


@dataclass(frozen=True)
class Proposition:
    """The result for one K."""

    K: int
    schedules: int
    """Number of synchronized schedules: 2**(K+1)."""
    solving_both: int
    """How many schedules solve both contexts."""
    solving_one: int
    local_solves_both: bool
    """Whether the context-local schedule (a: one assisted episode, b: K) solves both."""

    @property
    def holds(self) -> bool:
        """Whether the proposition holds for this K."""
        return self.solving_both == 0 and self.local_solves_both


def solves_a(assisted: int, K: int) -> bool:
    """Whether context a succeeds after ``assisted`` of K+1 episodes with assistance."""
    return assisted >= 1 and (K + 1 - assisted) >= K


def solves_b(assisted: int, K: int) -> bool:
    """Whether context b succeeds."""
    return assisted >= K and (K + 1 - assisted) >= 1


def check_proposition(K: int) -> Proposition:
    """Count the synchronized schedules of K+1 episodes that solve one context or both."""
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
