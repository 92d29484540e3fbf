"""The colour of a level, the same in every picture and on every page: dark is the target start, yellow the easiest.

The colour shows how much help a start gives, not whether it succeeded. So a run that trains from the target start alone
is dark, whether it learns or not. The scale is matplotlib's viridis: its lightness rises evenly, also for colour-blind
readers and in print.
"""

from __future__ import annotations

import numpy as np

STOPS = (
    (68, 1, 84), (71, 45, 123), (59, 82, 139), (44, 114, 142), (33, 145, 140), (40, 174, 128), (94, 201, 98),
    (173, 220, 48), (253, 231, 37),
)  # fmt: skip
"""Red, green and blue from level 0 to the easiest level; between two of them the colour is mixed."""
TARGET, EASIEST = "target start (no help)", "easiest start (most help)"
"""What legends call the two ends."""


def level_colours(n_levels: int) -> list[str]:
    """The colour of every level, as ``#rrggbb``."""
    place = np.linspace(0, len(STOPS) - 1, n_levels)
    channels = [np.interp(place, np.arange(len(STOPS)), channel) for channel in np.transpose(STOPS)]
    return ["#" + "".join(f"{value:02x}" for value in rgb) for rgb in np.rint(channels).astype(int).T.tolist()]


def level_names(n_levels: int) -> list[str]:
    """The level numbers for a legend; the two ends say what they are."""
    ends = {n_levels - 1: EASIEST, 0: TARGET}
    return [f"{level}: {ends[level]}" if level in ends else str(level) for level in range(n_levels)]
