"""Whether a bank has one pace, a few or many: the view of the model behind the rule `ability`.

Every record holds cells and outcomes, whichever rule drew the cells. They are replayed through the rule, window by
window; ``g[l]`` is then what the whole bank shows at a level at that time. A context's **offset** is what, in logits,
added to ``g`` explains its outcomes best: positive for contexts ahead of the bank. It is a maximum a posteriori
estimate with a wide prior, and its error follows from the information in its outcomes. The filter's own offset ``d`` is
not used: it remembers the last few outcomes only, and its errors are those of a moment.

Contexts are compared in two views. In the first, a context has one offset for all levels. In the second it has one
per level, and contexts are compared along the direction in which these profiles differ most. The second sees kinds that
differ in *which* level is hard, and kinds whose difference a rule hides by training each at levels of its own. It is
less precise, and its direction is chosen with the answer in sight, so it must show a clearer split.

A few paces are a split of the sorted offsets at wide gaps, into two or three parts so far apart that a smooth spread
seldom looks like it (`distance_needed`). Without one, the spread of the first view's offsets beyond their errors
decides: up to `SPREAD` it is one pace, above that many. The few contexts that are furthest off decide nothing.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report.measure.pacing import FEW
from scout_rl.report.read.run import RunRecord
from scout_rl.report.read.statuses import recorded_rule, replayed

Floats = NDArray[np.float64]
SPREAD = 0.9
"""S.d. of the offsets beyond their errors, in logits, up to which contexts have one pace."""
NEXT = 1.3
"""Least distance of two paces, in logits."""
MOST_PACES = 3
MARGIN = 0.6
"""How much further apart than in a uniform spread a few paces are, in s.d. within one."""
PRIOR = 3.0
"""S.d. of the offsets' prior: keeps a context that always fails finite."""
ALONG = 0.6
"""Correlation of the prior between the offsets of neighbouring levels, as in the rule."""
CHOSEN = 0.5
"""How much further apart the parts must be in the second view, in s.d. within one."""
INFORMED = 2.0
"""Information that a context's outcomes must hold: about eight outcomes of even chance. Others are left out."""
FEWEST = 4
"""Contexts that a verdict needs."""
WIDEST = 40
"""Splits are tried at this many of the widest gaps."""


class Offsets(NamedTuple):
    """What was estimated of every context, in logits: one number, or one per level."""

    value: Floats
    """``[contexts, numbers]``."""
    covariance: Floats
    """``[contexts, numbers, numbers]``: of the errors."""
    informed: NDArray[np.bool_]
    """``[contexts]``: whether its outcomes hold enough information."""

    def along(self, direction: Floats) -> tuple[Floats, Floats]:
        """Value and error of the informed contexts along a direction, ``[informed contexts]`` each."""
        variance = np.einsum("k,xkm,m->x", direction, self.covariance[self.informed], direction)
        return self.value[self.informed] @ direction, np.sqrt(variance)


class Paces(NamedTuple):
    """How many paces the offsets show, and the numbers behind it."""

    number: int
    """1, 2 or 3; 0: many."""
    spread: float
    """S.d. between contexts beyond the error, in logits."""
    error: float
    """The error of an offset: root mean square."""
    centres: tuple[float, ...]
    """The mean offset of every pace, the slowest first. Where they are many: one mean, or those of a split that is not
    clear enough."""
    sizes: tuple[int, ...]
    """Contexts of every pace."""
    within: float
    """S.d. between contexts of one pace beyond the error."""
    left_out: int
    """Contexts without enough outcomes."""
    profiles: tuple[tuple[float, ...], ...] = ()
    """The mean offset of every pace per level, where only the view by levels shows a few; else empty."""

    @property
    def sentence(self) -> str:
        """The verdict with its numbers."""
        word = {1: "one pace", 2: "two paces", 3: "three paces", 0: "many paces"}[self.number]
        start = f"The bank has {word} (the model's view: the outcomes replayed through the rule ability): "
        error = f"beyond an error of {self.error:.2f}"
        differ = f"contexts differ from the bank by a standard deviation of {self.spread:.2f} logits {error}"
        pairs = zip(self.sizes, self.centres, strict=True)
        parts = [f"{n} contexts at {at:+.1f} ({1 / (1 + np.exp(-at)):.0%})" for n, at in pairs]
        split = f"{', '.join(parts)} logits from the bank (in brackets: success where the bank has 50%)"
        if self.profiles:
            pairs_by_level = zip(self.sizes, self.profiles, strict=True)
            by_level = [f"{n} contexts at {', '.join(f'{at:+.1f}' for at in profile)}" for n, profile in pairs_by_level]
            why = f"{'; '.join(by_level)} logits from the bank at levels 0 to {len(self.profiles[0]) - 1}"
        elif self.number == 1:
            why = f"{differ}, and up to {SPREAD} count as one"
        elif self.number:
            why = f"{split}; within one pace they differ by {self.within:.2f} logits {error}"
        elif len(parts) > 1:
            why = f"{differ}; it may be {len(parts)} paces, but the split is not clear enough: {split}"
        else:
            why = f"{differ}, and no split into two or three parts explains that"
        others = "1 other has" if self.left_out == 1 else f"{self.left_out} others have"
        lacking = f"; {others} too few outcomes" if self.left_out else ""
        return f"{start}{why} ({sum(self.sizes)} contexts{lacking})."


def paces(run: RunRecord) -> Paces | None:
    """Judge a run by its outcomes; None where too few contexts have enough of them."""
    bank, n_levels = bank_logits(run), run.about.n_levels
    whole = offsets(run, bank, np.ones((n_levels, 1)), np.eye(1))
    if whole.informed.sum() <= FEWEST:
        return None
    left_out = int((~whole.informed).sum())
    verdict = count_paces(*whole.along(np.ones(1)))
    if verdict.number > 1:
        return verdict._replace(left_out=left_out)
    by_level = offsets(
        run, bank, np.eye(n_levels), ALONG ** np.abs(np.subtract.outer(range(n_levels), range(n_levels)))
    )
    value, error = by_level.along(main_direction(by_level))
    second = count_paces(value, error, CHOSEN)
    if second.number > 1:
        part = np.abs(value[:, None] - np.array(second.centres)).argmin(axis=1)
        profiles = by_level.value[by_level.informed]
        means = (profiles[part == k].mean(axis=0) for k in range(second.number))
        verdict = second._replace(profiles=tuple(tuple(mean.tolist()) for mean in means))
    return verdict._replace(left_out=left_out)


def offsets(run: RunRecord, bank: Floats, levels: Floats, prior: Floats) -> Offsets:
    """Every context's offset from what the whole bank shows (`bank_logits`).

    ``levels`` is ``[levels, numbers]``: what each number adds to each level. ``prior`` is their correlation.
    """
    n, n_levels = run.about.n_contexts, run.about.n_levels
    cell = run.rollouts.context.astype(np.int64) * n_levels + run.rollouts.level
    success = run.rollouts.success.astype(float)

    def sums(logit: Floats) -> tuple[Floats, Floats]:
        P = 1 / (1 + np.exp(-logit))
        residual, information = (
            np.bincount(cell, success - P, n * n_levels),
            np.bincount(cell, P * (1 - P), n * n_levels),
        )
        return residual.reshape(n, n_levels).astype(float), information.reshape(n, n_levels).astype(float)

    informed = sums(bank)[1].sum(axis=1) >= INFORMED
    known = np.linalg.inv(PRIOR**2 * prior)
    value = np.zeros((n, levels.shape[1]))
    for _ in range(30):  # Newton steps; the sum is concave, and a step of 1 at most cannot overshoot far
        residual, information = sums(bank + (value @ levels.T).reshape(-1)[cell])
        precision = known + np.einsum("lk,xl,lm->xkm", levels, information, levels)
        step = np.linalg.solve(precision, (residual @ levels - value @ known)[..., None])[..., 0]
        value = value + np.clip(step, -1, 1)
    return Offsets(value, np.linalg.inv(precision), informed)


def main_direction(profiles: Offsets) -> Floats:
    """The direction over levels in which contexts differ most beyond their errors: weights whose sizes add up to 1."""
    value, covariance = profiles.value[profiles.informed], profiles.covariance[profiles.informed]
    _, directions = np.linalg.eigh(np.cov(value.T) - covariance.mean(axis=0))
    direction = directions[:, -1] / np.abs(directions[:, -1]).sum()
    return np.asarray(direction if direction.sum() >= 0 else -direction, np.float64)


def bank_logits(run: RunRecord) -> Floats:
    """``[rollouts]``: the logit of success at its level that the whole bank shows after its window."""
    rule = (recorded_rule(run) if run.about.rule == rules.Ability.key else None) or rules.Ability()
    logits = np.zeros(len(run.rollouts.level))
    for own, state in replayed(run, rule):
        logits[own] = state.shared[run.rollouts.level[own]]
    return logits


def count_paces(value: Floats, error: Floats, further: float = 0.0) -> Paces:
    """One pace, two, three, or many (0), from offsets and their errors.

    A split must be ``further`` apart than `distance_needed`, in s.d. within its parts.
    """
    kept = _without_few(value)
    ordered, noise = np.sort(value[kept]), float(np.mean(error[kept] ** 2))
    spread = _beyond(float(ordered.var(ddof=1)), noise)
    whole = Paces(1, spread, noise**0.5, (float(ordered.mean()),), (len(value),), spread, 0)
    if not _beyond_chance(value[kept], error[kept]):
        return whole
    splits = [best_split(ordered, noise, count) for count in range(2, MOST_PACES + 1)]
    distance, variance, parts = max(splits, key=lambda split: split[0])
    within, centres = _beyond(variance, noise), np.array([part.mean() for part in parts])
    apart = within <= SPREAD and len(parts) > 1 and np.diff(centres).min() >= NEXT
    needed = distance_needed(len(ordered)) + further
    clear, nearly = distance >= needed, spread > SPREAD and distance >= needed - MARGIN
    if apart and (clear or nearly):
        nearest = np.abs(value[:, None] - centres).argmin(axis=1)
        sizes = tuple(np.bincount(nearest, minlength=len(centres)).tolist())
        number = len(centres) if clear else 0
        return whole._replace(number=number, centres=tuple(centres.tolist()), sizes=sizes, within=within)
    return whole if spread <= SPREAD else whole._replace(number=0)


def best_split(ordered: Floats, noise: float, count: int) -> tuple[float, float, list[Floats]]:
    """Split sorted offsets at wide gaps into ``count`` parts, each of two contexts and of the share `FEW` at least.

    The best split has the largest distance between neighbouring means, in s.d. within parts. Returned are that
    distance, the variance within parts, and the parts; distance 0 without a split.
    """
    n, best = len(ordered), (0.0, float("inf"), [ordered])
    least = max(2, round(FEW * n))
    cuts = np.sort(np.argsort(-np.diff(ordered), kind="stable")[:WIDEST]) + 1
    for places in combinations(cuts[(cuts >= least) & (cuts <= n - least)].tolist(), count - 1):
        parts = np.split(ordered, places)
        if min(map(len, parts)) < least or n <= count:
            continue
        variance = sum(float(np.square(part - part.mean()).sum()) for part in parts) / (n - count)
        means = [part.mean() for part in parts]
        distance = float(np.diff(means).min() / np.sqrt(max(variance, noise, 1e-12)))
        if distance > best[0]:
            best = distance, variance, parts
    return best


def distance_needed(n: int) -> float:
    """The distance of a split, in s.d. within its parts, that counts as a few paces.

    Equal parts of a uniform spread are ``sqrt(12)`` apart, of a normal one less, and the best of all splits of ``n``
    uniform offsets seldom exceeds ``sqrt(12) + 40 / n``. `MARGIN` more is asked for: offsets of real outcomes clump a
    little where all contexts succeed, or all fail. Error rates: tests/report/test_paces.py.
    """
    return float(np.sqrt(12)) + 40 / n + MARGIN


def _beyond(variance: float, noise: float) -> float:
    return float(np.sqrt(max(0.0, variance - noise)))


def _beyond_chance(value: Floats, error: Floats) -> bool:
    """Whether errors alone give such a spread less than once in a hundred times (chi-square, as a normal variable)."""
    weight, freedom = error**-2, len(value) - 1
    centre = (weight * value).sum() / weight.sum()
    return bool((weight * (value - centre) ** 2).sum() > freedom + 2.33 * np.sqrt(2 * freedom))


def _without_few(value: Floats) -> NDArray[np.int64]:
    """Indices without the `FEW` (at least one) that are furthest off: one hopeless context shall not decide."""
    order = np.argsort(np.abs(value - np.median(value)), kind="stable")
    return order[: len(value) - max(1, round(FEW * len(value)))]
