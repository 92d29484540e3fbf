"""Whether a bank has one pace, a few or many: the view of the model behind the rule `ability`.

Every record holds cells and outcomes, whichever rule drew the cells. They are replayed through the rule, window by
window; ``g[l]`` is then what the whole bank shows at a level at that time. A context's **offset** is the one number,
in logits, that added to ``g`` explains its outcomes best: positive for contexts ahead of the bank. It is a maximum a
posteriori estimate with a wide prior, and its error follows from the information in its outcomes. The filter's own
offset ``d`` is not used: it remembers the last few outcomes only, and its errors are those of a moment.

A few paces are a split of the sorted offsets at wide gaps, into two or three parts so far apart that a smooth spread
seldom looks like it (`distance_needed`). Without one, the spread of the offsets beyond their errors decides: up to
`SPREAD` it is one pace, above that many. The few contexts that are furthest off decide nothing.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report.measure.pacing import FEW
from scout_rl.report.read.run import RunRecord
from scout_rl.report.read.statuses import recorded_rule
from scout_rl.rules.cells import Outcomes

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
INFORMED = 2.0
"""Information that a context's outcomes must hold: about eight outcomes of even chance. Others are left out."""
FEWEST = 4
"""Contexts that a verdict needs."""
WIDEST = 40
"""Splits are tried at this many of the widest gaps."""


class Offsets(NamedTuple):
    """Per context ``[contexts]``, in logits."""

    value: Floats
    error: Floats
    informed: NDArray[np.bool_]
    """Whether its outcomes hold enough information."""


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
        if self.number == 1:
            why = f"{differ}, and up to {SPREAD} count as one"
        elif self.number:
            why = f"{split}; within one pace they differ by {self.within:.2f} logits {error}"
        elif len(parts) > 1:
            why = f"{differ}; it may be {len(parts)} paces, but the split is not clear enough: {split}"
        else:
            why = f"{differ}, and no split into two or three parts explains that"
        lacking = f"; {self.left_out} others have too few outcomes" if self.left_out else ""
        return f"{start}{why} ({sum(self.sizes)} contexts{lacking})."


def paces(run: RunRecord) -> Paces | None:
    """Judge a run by its outcomes; None where too few contexts have enough of them."""
    value, error, informed = offsets(run)
    if informed.sum() <= FEWEST:
        return None
    verdict = count_paces(value[informed], error[informed])
    return verdict._replace(left_out=int((~informed).sum()))


def offsets(run: RunRecord) -> Offsets:
    """Every context's offset from what the whole bank shows."""
    context, success = run.rollouts.context, run.rollouts.success.astype(float)
    n, bank = run.about.n_contexts, bank_logits(run)

    def sums(logit: Floats) -> tuple[Floats, Floats]:
        P = 1 / (1 + np.exp(-logit))
        residual, information = np.bincount(context, success - P, n), np.bincount(context, P * (1 - P), n)
        return residual.astype(float), information.astype(float)

    _, at_the_bank = sums(bank)
    value = np.zeros(n)
    for _ in range(30):  # Newton steps; the sum is concave, and a step of 1 at most cannot overshoot far
        residual, information = sums(bank + value[context])
        information = information + PRIOR**-2
        value = value + np.clip((residual - value * PRIOR**-2) / information, -1, 1)
    return Offsets(value, 1 / np.sqrt(information), at_the_bank >= INFORMED)


def bank_logits(run: RunRecord) -> Floats:
    """``[rollouts]``: the logit of success at its level that the whole bank shows after its window."""
    rule = (recorded_rule(run) if run.about.rule == rules.Ability.key else None) or rules.Ability()
    state = rule.init(run.about.n_contexts, run.about.n_levels)
    context, level = run.rollouts.context.astype(np.int64), run.rollouts.level.astype(np.int64)
    logits = np.zeros(len(level))
    edges = np.searchsorted(run.rollouts.window, np.arange(run.about.windows + 1))
    for start, end in pairwise(edges.tolist()):
        part, size = slice(start, end), end - start
        success = run.rollouts.success[part]
        state = rule.update(state, Outcomes(context[part], level[part], success, np.zeros(size), np.ones(size, bool)))
        logits[part] = state.shared[level[part]]
    return logits


def count_paces(value: Floats, error: Floats) -> Paces:
    """One pace, two, three, or many (0), from offsets and their errors."""
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
    needed = distance_needed(len(ordered))
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
