"""Whether contexts needed different paces, from records alone: what chance allows, and how large it is.

Two questions, two permutation tests. Do contexts at the same level in the same period succeed alike? (Rollouts are
exchanged within level, period and group.) Do the given groups train from different levels? (Labels are exchanged
between contexts.) A difference that chance allows is none, and one that is too small to matter is none either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.read.replay import replay
from scout_rl.report.read.run import Run
from scout_rl.rules import Status

Floats = NDArray[np.float64]
PERIOD = 25
"""Windows of a period: short enough that the policy hardly changes, long enough that several contexts share a level."""
SHUFFLES = 200
CHANCE = 0.01
"""p below which chance is ruled out."""
FEW = 0.05
"""Share of contexts, the furthest off, that no verdict rests on."""
UNDER_WAY = 0.1
"""Share of contexts above the target start below which a period says nothing about pace: the curriculum is over."""
POOLED = ("group-frontier",)
"""Rules whose frontier is not a context's own."""


class Difference(NamedTuple):
    """A difference between contexts or groups."""

    size: float
    """Between contexts: s.d. of their success at equal level and period. Between groups: levels (or success) apart."""
    p: float
    """Share of shuffled records with as large a difference."""

    @property
    def beyond_chance(self) -> bool:
        """Whether shuffling hardly ever gives as much."""
        return self.p < CHANCE


class Pacing(NamedTuple):
    """What the records say about pace."""

    own_frontiers: bool
    """Whether every context had its own; else only success can be compared."""
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
    """Share of (window, context above the target) pairs that waited for rollouts alone; None where it is not known."""


def success_between_contexts(run: Run, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """Contexts of one group at one level in one period: do their successes differ by more than chance?

    The statistic is the sum over contexts of (successes minus expected)^2. Frontiers stop a context's rollouts at a
    level by its own success, and the square of a stopped fair game still grows by its variance alone, so that is no
    difference. A policy that jumps within a period makes p somewhat too small; a verdict therefore also asks for size.
    """
    played = run.played
    if not len(played.context):
        return Difference(0.0, 1.0)
    stratum = _strata(run, group)
    order = np.argsort(stratum, kind="stable")
    stratum, context, success = stratum[order], played.context[order], played.success[order].astype(float)
    _, stratum = np.unique(stratum, return_inverse=True)
    residual = success - (np.bincount(stratum, success) / np.bincount(stratum))[stratum]

    def spread(values: Floats) -> float:
        return float(_without_few(np.square(np.bincount(context, values).astype(float))).sum())

    found = spread(residual)
    place = stratum.astype(float)
    shuffled = np.array([spread(residual[np.argsort(place + rng.random(len(place)))]) for _ in range(SHUFFLES)])
    weight = float((np.bincount(context).astype(float) ** 2).sum()) * (1 - FEW)
    size = float(np.sqrt(max(0.0, (found - shuffled.mean()) / weight)))
    return Difference(size, float((1 + (shuffled >= found).sum()) / (1 + SHUFFLES)))


def _without_few(values: Floats) -> Floats:
    """Without the largest twentieth (one at least): a hopeless context is no reason to pace the others apart."""
    return np.sort(values)[: len(values) - max(1, round(FEW * len(values)))]


def _strata(run: Run, group: NDArray[np.int64]) -> NDArray[np.int64]:
    period = run.played.window.astype(np.int64) // PERIOD
    return (period * run.about.n_levels + run.played.level) * (int(group.max()) + 1) + group[run.played.context]


def levels_between_groups(run: Run, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """How many levels apart the furthest two groups train, period by period, on average over those under way.

    Groups that overtake each other are apart on both sides of it: an average over time of each group would hide that.
    """
    assert run.frontier is not None
    edges = np.arange(0, len(run.frontier), PERIOD)
    lengths = np.diff(np.append(edges, len(run.frontier)))
    level = np.add.reduceat(run.frontier, edges, axis=0, dtype=float) / lengths[:, None]
    under_way = (level > 0).mean(axis=1) >= UNDER_WAY
    if not under_way.any():
        return Difference(0.0, 1.0)
    return _between(level[under_way], group, rng)


def success_between_groups(run: Run, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """How far apart the success of the furthest two groups is at equal level and period."""
    nobody = np.zeros_like(group)
    _, stratum = np.unique(_strata(run, nobody), return_inverse=True)
    success = run.played.success.astype(float)
    residual = success - (np.bincount(stratum, success) / np.bincount(stratum))[stratum]
    n = len(group)
    tried = np.bincount(run.played.context, minlength=n)
    mean = np.bincount(run.played.context, residual, minlength=n) / np.maximum(tried, 1)
    return _between(mean[None], group, rng)


def _between(value: Floats, group: NDArray[np.int64], rng: np.random.Generator) -> Difference:
    """The furthest two groups' means, apart in every row of ``value``; the mean over rows."""
    member = np.eye(int(group.max()) + 1)[group] / np.maximum(np.bincount(group), 1)

    def gap(order: NDArray[np.int64]) -> float:
        means = value @ member[order]
        return float((means.max(axis=1) - means.min(axis=1)).mean())

    found = gap(np.arange(len(group)))
    shuffled = np.array([gap(rng.permutation(len(group))) for _ in range(SHUFFLES)])
    return Difference(found, float((1 + (shuffled >= found - 1e-12).sum()) / (1 + SHUFFLES)))


def level_spread(frontier: NDArray[np.int8], group: NDArray[np.int64]) -> float:
    """S.d. of the contexts' time-averaged levels around their group's mean: by how many levels a shared one is off."""
    level = frontier.mean(axis=0, dtype=float)
    off = level - (np.bincount(group, level) / np.bincount(group))[group]
    return float(np.sqrt(np.mean(_without_few(off**2))))


def gathering_share(run: Run) -> float | None:
    """How much of the time above the target start a context had too few rollouts for any decision."""
    status = replay(run)
    if status is None or run.frontier is None:
        return None
    above = run.frontier > 0
    return float((status[above] == Status.GATHERING).mean()) if above.any() else 0.0
