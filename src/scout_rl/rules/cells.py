"""The small value types that rules, curricula and learners exchange: cells, outcomes, events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array, a JAX array or a torch tensor: the rules run on all. Docstrings give the shapes."""


class Cells(NamedTuple):
    """A batch of cells (context, level), two int arrays of the same length."""

    context: NDArray[np.int64]
    level: NDArray[np.int64]


class Outcomes(NamedTuple):
    """The outcomes of one window: arrays of one length. Entries with ``valid = False`` are ignored.

    ``signal`` is a number from the learner per rollout: the mean absolute TD error for ``plr``, critic disagreement
    for ``scout`` with ``lambda_u``. It is 0 where the learner has none.
    """

    context: Array
    level: Array
    success: Array
    signal: Array
    valid: Array


class Chance(NamedTuple):
    """What a rule's model says of every cell: two arrays ``[contexts, levels]``."""

    success: NDArray[np.float64]
    """The estimated probability that a rollout from this cell succeeds."""
    error: NDArray[np.float64]
    """The standard error of the estimate's logit, ``log(success / (1 - success))``: about 2 of 3 true logits are within
    one error. It is no error of the probability itself."""


class Event(NamedTuple):
    """One move of one frontier, and the numbers behind the decision."""

    window: int
    """The window whose transition pass moved it (0 is the first)."""
    context: int
    kind: str
    """``advance``, ``retreat`` or ``antistall`` (a probe of a harder level out of the dead band)."""
    from_level: int
    to_level: int
    success_average: float
    """The success statistic of the cell that the frontier left, after this window's outcomes (docs/metrics.md)."""
    evidence: int
    """How many outcomes that cell has had."""
