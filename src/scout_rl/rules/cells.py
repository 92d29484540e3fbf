"""The small value types that travel between the stages: cells, outcomes, events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy or JAX array. Shapes stand in the docstrings: the rules run on both."""


class Cells(NamedTuple):
    """A batch of cells (context, level), two int arrays of the same length."""

    context: NDArray[np.int64]
    level: NDArray[np.int64]


class Outcomes(NamedTuple):
    """What one window of rollouts showed; arrays of one length, entries with ``valid = False`` are ignored.

    ``signal`` is the learner's own number for the rollout (mean absolute TD error for ``plr``, critic
    disagreement for ``scout`` with ``lambda_u``); 0 where the learner gives none.
    """

    context: Array
    level: Array
    success: Array
    signal: Array
    valid: Array


class Event(NamedTuple):
    """One move of one frontier, and the numbers that it was decided on."""

    window: int
    """The window whose transition pass moved it (0 is the first)."""
    context: int
    kind: str
    """``advance``, ``retreat`` or ``antistall`` (a probe of a harder level out of the dead band)."""
    from_level: int
    to_level: int
    success_average: float
    """The success statistic of the cell that was left, after this window's outcomes."""
    evidence: int
    """How many outcomes that cell has had."""
