"""How far along each level of a Meta-World ladder stands."""

from __future__ import annotations

import numpy as np

from scout_rl.ladder import FRACTIONS


def level_fractions(n_levels: int) -> tuple[float, ...]:
    """The paper's five fractions; other counts are spread evenly over the same line."""
    if n_levels < 2:
        raise ValueError(f"a ladder needs at least two levels, not {n_levels}")
    places = np.linspace(0, len(FRACTIONS) - 1, n_levels)
    return tuple(float(f) for f in np.interp(places, range(len(FRACTIONS)), FRACTIONS))
