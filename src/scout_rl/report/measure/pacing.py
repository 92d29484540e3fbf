"""Whether contexts needed different paces, from records alone: two permutation tests.

Do contexts at the same level in the same period succeed alike? (Rollouts are exchanged within level, period and group.)
Do groups train from different levels? (Labels are exchanged between contexts.) A difference counts only if chance does
not explain it and it is large enough to matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.stuck import has_model
from scout_rl.report.read.run import RunRecord
from scout_rl.report.read.statuses import window_statuses
from scout_rl.rules import Status

Floats = NDArray[np.float64]
PERIOD = 25
"""Windows per period: short, so that the policy hardly changes; long, so that several contexts share a level."""
SHUFFLES = 200
CHANCE = 0.01
"""p below which chance is ruled out."""
FEW = 0.05
"""Share of contexts, the most extreme ones, that are left out."""
UNDER_WAY = 0.1
"""A period counts only if at least this share of contexts is above the target start."""
POOLED = ("group-frontier",)
"""Rules whose frontier is shared by contexts."""


class Difference(NamedTuple):
    """A difference between contexts or groups."""

    size: float
    """Between contexts: s.d. of their success at equal level and period. Between groups: levels (or success) apart."""
    p: float
    """Share of shuffled records with as large a difference."""

    @property
    def beyond_chance(self) -> bool:
        """Whether chance is ruled out."""
        return self.p < CHANCE


class Pacing(NamedTuple):
    """The differences in pace between contexts and groups."""

    own_frontiers: bool
    """Whether every context had its own frontier; else only success is compared."""
    within: Difference
    """Between contexts of one group."""
    between: Difference | None
    """Between groups; None with one group or without labels."""
    spread: float
    """S.d. between contexts of their level averaged over time."""
    spread_in_group: float
    """The same between contexts of one group."""
    dispersion: dict[str, float]
    """IQR of the frontiers by group, mean over windows."""
    gathering: float | None
    """Share of (window, context above the target) pairs with too few rollouts for a decision; None where unknown,
    or where no number of rollouts is asked for."""


def success_between_contexts(run: RunRecord, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """Contexts of one group at one level in one period: do their successes differ by more than chance?

    The statistic is the sum over contexts of (successes minus expected)^2. A frontier moves by a context's own
    success; that adds no bias, since the expected square of a stopped fair game is its variance. A policy that changes
    much within a period makes p somewhat too small, so a verdict also asks for size.
    """
    rollouts = run.rollouts
    if not len(rollouts.context):
        return Difference(0.0, 1.0)
    stratum = _strata(run, group)
    order = np.argsort(stratum, kind="stable")
    stratum, context, success = stratum[order], rollouts.context[order], rollouts.success[order].astype(float)
    _, stratum = np.unique(stratum, return_inverse=True)
    residual = _around_mean(success, stratum)

    def spread(values: Floats) -> float:
        return float(_without_few(np.square(np.bincount(context, values).astype(float))).sum())

    observed = spread(residual)
    keys = stratum.astype(float)
    shuffled = np.array([spread(residual[np.argsort(keys + rng.random(len(keys)))]) for _ in range(SHUFFLES)])
    weight = float((np.bincount(context).astype(float) ** 2).sum()) * (1 - FEW)
    size = float(np.sqrt(max(0.0, (observed - shuffled.mean()) / weight)))
    return Difference(size, _p(observed, shuffled))


def _p(observed: float, shuffled: Floats) -> float:
    """Share of the shuffled records, and of the observed one, that show as much."""
    return float((1 + (shuffled >= observed).sum()) / (1 + SHUFFLES))


def _around_mean(values: Floats, part: NDArray[np.int64]) -> Floats:
    """Every value minus the mean of its part."""
    return np.asarray(values - (np.bincount(part, values) / np.bincount(part))[part])


def _without_few(values: Floats) -> Floats:
    """Without the largest `FEW` (at least one): one hopeless context shall not decide."""
    return np.sort(values)[: len(values) - max(1, round(FEW * len(values)))]


def _strata(run: RunRecord, group: NDArray[np.int64]) -> NDArray[np.int64]:
    period = run.rollouts.window.astype(np.int64) // PERIOD
    return (period * run.about.n_levels + run.rollouts.level) * (int(group.max()) + 1) + group[run.rollouts.context]


def levels_between_groups(run: RunRecord, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """Distance in levels of the two groups that are furthest apart, per period; the mean over periods under way.

    Averaging each group over time first would hide groups that overtake each other.
    """
    assert run.frontier is not None
    edges = np.arange(0, len(run.frontier), PERIOD)
    lengths = np.diff(np.append(edges, len(run.frontier)))
    level = np.add.reduceat(run.frontier, edges, axis=0, dtype=float) / lengths[:, None]
    under_way = (level > 0).mean(axis=1) >= UNDER_WAY
    if not under_way.any():
        return Difference(0.0, 1.0)
    return _between(level[under_way], group, rng)


def success_between_groups(run: RunRecord, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """Largest difference in success between two groups, at equal level and period."""
    one_group = np.zeros_like(group)
    _, stratum = np.unique(_strata(run, one_group), return_inverse=True)
    success = run.rollouts.success.astype(float)
    residual = _around_mean(success, stratum)
    n = len(group)
    tried = np.bincount(run.rollouts.context, minlength=n)
    mean = np.bincount(run.rollouts.context, residual, minlength=n) / np.maximum(tried, 1)
    return _between(mean[None], group, rng)


def _between(value: Floats, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """Largest difference between two groups' means, per row of ``value``; the mean over rows."""
    member = np.eye(int(group.max()) + 1)[group] / np.maximum(np.bincount(group), 1)

    def gap(order: NDArray[np.int64]) -> float:
        means = value @ member[order]
        return float((means.max(axis=1) - means.min(axis=1)).mean())

    observed = gap(np.arange(len(group)))
    shuffled = np.array([gap(rng.permutation(len(group))) for _ in range(SHUFFLES)])
    return Difference(observed, _p(observed - 1e-12, shuffled))


def level_spread(frontier: NDArray[np.int8], group: NDArray[np.int64]) -> float:
    """S.d. of the contexts' time-averaged levels around their group's mean."""
    off = _around_mean(frontier.mean(axis=0, dtype=float), group)
    return float(np.sqrt(np.mean(_without_few(off**2))))


def gathering_share(run: RunRecord) -> float | None:
    """`Pacing.gathering` of a run."""
    statuses = None if has_model(run.about.rule) else window_statuses(run)
    if statuses is None or run.frontier is None:
        return None
    above = run.frontier > 0
    return float((statuses[above] == Status.GATHERING).mean()) if above.any() else 0.0
