"""Statistics over seeds (spec section 7): pure functions, the generator is passed in.

Scores are ``[seeds]``; for the aggregates over settings, a list of such arrays, one per setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 10_000
"""Behind every printed interval."""
FEWEST = 3
"""Seeds that an interval needs at least. Intervals of three seeds cover about 75%, of six about 94%."""
SEED = 0
"""Seeds the generator of every printed interval, so that tables are reproducible."""

MOST_FLIPS, GRID = 40, 100_000
"""Differences of an exact sign-flip test: a million sums per half. More are rounded to so many steps in all."""
T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)
"""0.975 quantiles of Student's t, by degrees of freedom from 1; more take the last, which is wider."""


class Interval(NamedTuple):
    """A point estimate and its 95% interval; the bounds are NaN where there are too few seeds."""

    point: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it lies on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        return not math.isnan(self.low)


class Paired(NamedTuple):
    """SCOUT minus a rule over the seeds that both have."""

    difference: Interval
    """Median over seeds."""
    n: int
    wins: int
    p: float
    """Exact two-sided sign test; 1 if all seeds tie."""


def generator() -> np.random.Generator:
    """A fresh generator with the fixed seed."""
    return np.random.default_rng(SEED)


def bootstrap(
    values: Floats, statistic: Callable[..., Floats], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Percentile interval of ``statistic(values, axis=...)`` under resampling of seeds with replacement."""
    seeds = [np.asarray(values, float)]
    return stratified_bootstrap(lambda strata: statistic(strata[0], axis=-1), seeds, rng=rng, resamples=resamples)


def sign_test(differences: Floats) -> float:
    """Exact two-sided p-value; ties are left out."""
    differences = np.asarray(differences, float)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    n, k = wins + losses, min(wins, losses)
    if n == 0:
        return 1.0
    return min(1.0, 2.0 * sum(math.comb(n, i) for i in range(k + 1)) / float(2**n))


def sign_flip_test(differences: Floats) -> float:
    """Exact two-sided p-value of the mean under all 2**n changes of sign.

    The sums of one half of the differences are sorted, and searched for every sum of the other half. More than 40
    differences are rounded to ``1 / GRID`` of the sum of their sizes. Zeros change nothing and are left out.
    """
    differences = np.asarray(differences, float)
    differences = differences[differences != 0]
    if differences.size == 0:
        return 1.0
    if differences.size > MOST_FLIPS:
        return _rounded_sign_flip_test(differences)
    first, second = _signed_sums(differences[::2]), np.sort(_signed_sums(differences[1::2]))
    least = abs(differences.sum()) * (1 - 1e-12) - 1e-12
    above = second.size - second.searchsorted(least - first, side="left")
    below = second.searchsorted(-least - first, side="right")
    extreme = np.minimum(above + below, second.size).sum()  # with a sum of 0 every change of sign is both
    return float(extreme) / 2.0**differences.size


def _rounded_sign_flip_test(differences: Floats) -> float:
    """The chances of all sums on a grid, one change of sign after the other."""
    steps = np.rint(differences / np.abs(differences).sum() * GRID).astype(int)
    widest = int(np.abs(steps).sum())
    chance = np.zeros(2 * widest + 1)  # of the sums from -widest to widest
    chance[widest] = 1.0
    for step in np.abs(steps):
        chance = (np.roll(chance, step) + np.roll(chance, -step)) / 2  # nothing comes around: sums stay within widest
    least = abs(int(steps.sum()))
    return float(chance[: widest - least + 1].sum() + chance[widest + least :].sum()) if least else 1.0


def _signed_sums(values: Floats) -> Floats:
    """The sums under all changes of sign."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def mean_interval(values: Floats) -> Interval:
    """The mean with Student's 95% interval; too few values have no bounds."""
    values = np.asarray(values, float)
    n, mean = values.size, float(values.mean())
    if n < FEWEST:
        return Interval(mean, math.nan, math.nan)
    half = T_975[min(n - 1, len(T_975)) - 1] * float(values.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def paired(
    scout: dict[int, float], rule: dict[int, float], statistic: Callable[..., NDArray[np.float64]] = np.median
) -> Paired | None:
    """Compare scores by seed; None where no seed has both."""
    seeds = sorted(scout.keys() & rule.keys())
    if not seeds:
        return None
    differences = np.array([scout[seed] - rule[seed] for seed in seeds])
    difference = bootstrap(differences, statistic, generator())
    return Paired(difference, len(seeds), int((differences > 0).sum()), sign_test(differences))


def holm(p: Sequence[float]) -> list[float]:
    """Holm-Bonferroni adjusted p-values, in the order of ``p``."""
    n, order = len(p), np.argsort(p, kind="stable")
    adjusted = np.empty(n)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, (n - np.arange(n)) * np.asarray(p)[order]))
    return list(adjusted.tolist())


class SelfCheck(NamedTuple):
    """A condition compared with itself: two halves of its seeds, as if they were two rules."""

    splits: int
    discoveries: int
    """Splits whose interval excludes 0. All of them are false."""
    widest: float
    """The largest absolute median difference between two halves. A smaller difference between rules says nothing."""


def self_check(scores: Floats, rng: np.random.Generator, most: int = 200) -> SelfCheck | None:
    """Compare all splits of the seeds into two halves; None with fewer than six seeds.

    The halves are paired in order. Of more than ``most`` splits, ``most`` are drawn at random.
    """
    scores = np.asarray(scores, float)
    half = len(scores) // 2
    if half < FEWEST:
        return None
    splits = [np.array(s) for s in combinations(range(2 * half), half) if 0 in s]
    if len(splits) > most:
        splits = [splits[i] for i in rng.choice(len(splits), most, replace=False)]
    discoveries, widest = 0, 0.0
    for half_seeds in splits:
        other_seeds = np.setdiff1d(np.arange(2 * half), half_seeds)
        interval = bootstrap(scores[half_seeds] - scores[other_seeds], np.median, rng)
        discoveries += interval.excludes_zero
        widest = max(widest, abs(interval.point))
    return SelfCheck(len(splits), discoveries, widest)


# -- over several settings, as in rliable: scores are [..., seeds], so that all resamples are computed at once -------


def interquartile_mean(scores: Sequence[Floats]) -> Floats:
    """Mean of the middle half of all runs of all settings. A quarter, rounded down, is cut at each end."""
    pooled = np.sort(np.concatenate([np.asarray(s, float) for s in scores], axis=-1), axis=-1)
    n = pooled.shape[-1]
    return np.asarray(pooled[..., n // 4 : n - n // 4].mean(axis=-1))


def probability_of_improvement(ours: Sequence[Floats], theirs: Sequence[Floats]) -> Floats:
    """Chance that one of our runs beats one of theirs in the same setting; ties count half. Mean over settings."""
    return np.asarray(
        np.mean([_beats(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs, strict=True)], axis=0)
    )


def _beats(a: Floats, b: Floats) -> Floats:
    a, b = a[..., :, None], b[..., None, :]
    return np.asarray((a > b).mean(axis=(-1, -2)) + 0.5 * (a == b).mean(axis=(-1, -2)))


def stratified_bootstrap(
    statistic: Callable[..., Floats],
    *scores: Sequence[NDArray[Any]],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Percentile interval of ``statistic(*scores)`` under resampling of seeds within each setting."""
    point = float(statistic(*scores))
    if any(len(s) < FEWEST for settings in scores for s in settings):
        return Interval(point, math.nan, math.nan)
    drawn = statistic(*([s[rng.integers(len(s), size=(resamples, len(s)))] for s in settings] for settings in scores))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Interval(point, float(low), float(high))


def ratio_interval(
    auto: Floats,
    manual: Floats,
    target: Floats,
    ratio: Callable[[Floats, Floats, Floats], Floats],
    rng: np.random.Generator,
) -> Interval:
    """Interval of R_retain under resampling of seeds, which the three scores share.

    ``ratio`` takes ``[..., seeds]``.
    """

    rows = [np.arange(len(auto))]
    return stratified_bootstrap(lambda drawn: ratio(auto[drawn[0]], manual[drawn[0]], target[drawn[0]]), rows, rng=rng)
