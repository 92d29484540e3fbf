"""Alerts as words: what a person should look at now. Each is a statement about the records, with its numbers.

group lost                held-out success of a group was good, and is at most half of that now
hopeless at the easiest   contexts that never succeed, even from the easiest level
level 0 falling           training success from the target start falls, compared context by context
levels alike              two neighbouring levels of the ladder succeed equally often
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.read.run import RunRecord

GOOD, FALL = 0.5, 0.3
"""A group is lost when it was at this success, has fallen by that much, and by half."""
SMOOTH = 3
"""Evaluations whose median counts: one bad evaluation is no loss."""
TRIES = 40
"""Rollouts from the easiest level without a success from which a context is hopeless. With a chance of one in ten, one
in 70 contexts would have so many by accident."""
DROP, SURE = 0.1, 4.0
"""Success at level 0 falls when it drops by this much, and by so many standard errors."""
FEWEST = 5
"""Contexts that must have level-0 rollouts in both periods."""
ALIKE, CERTAIN = 0.05, 2.0
"""Two levels are alike when their difference is within this bound, with so many standard errors on both sides."""
BETWEEN = (0.15, 0.85)
"""The success that they share: levels that all fail, or all succeed, say nothing about the ladder."""
PERIOD = 50
"""Windows: rollouts of one context are compared within a period."""
SHOWN = 50
"""Contexts that an alert names on the page."""


class Alert(NamedTuple):
    """One alert."""

    kind: str
    text: str
    contexts: list[int]
    group: str = ""


def alerts(run: RunRecord) -> list[Alert]:
    """Every alert of a run, the gravest kind first."""
    if not run.about.windows:
        return []
    return [*lost_groups(run), *hopeless(run), *falling(run), *alike(run)]


def lost_groups(run: RunRecord) -> list[Alert]:
    """Groups whose held-out success was good and is gone."""
    lost = []
    for name, curve in run.held_out_groups.items():
        if len(curve) < 2 * SMOOTH:
            continue
        smooth = np.median(np.lib.stride_tricks.sliding_window_view(curve, SMOOTH), axis=1)
        best, now = int(np.argmax(smooth)), float(smooth[-1])
        top = float(smooth[best])
        if top >= GOOD and now <= top / 2 and top - now >= FALL:
            at = int(run.evaluated_at[best + SMOOTH - 1])
            text = f"Group {name} is lost: held-out success was {top:.2f} after {at:,} windows and is {now:.2f} now."
            lost.append(Alert("group lost", text, [], name))
    return lost


def hopeless(run: RunRecord) -> list[Alert]:
    """Contexts whose last rollouts all failed, at the easiest level too."""
    easiest, n = run.about.n_levels - 1, run.about.n_contexts
    context, level, success = run.rollouts[1:]
    won = np.flatnonzero(success)
    last_success = np.full(n, -1)
    last_success[context[won]] = won  # in order: the last one stays
    since = (np.arange(len(context)) > last_success[context]) & (level == easiest)
    failed = np.bincount(context[since], minlength=n)
    bad = np.flatnonzero(failed >= TRIES)
    if not len(bad):
        return []
    tries = int(failed[bad].min())
    who = "Every context" if len(bad) == n else _named(bad)
    verb = "is" if len(bad) in (1, n) else "are"
    text = (
        f"{who} {verb} hopeless at the easiest level: no success in the last {tries} rollouts from level {easiest}. "
        "Look at the ladder's last rung, or at the reward."
    )
    return [Alert("hopeless at the easiest", text, bad[:SHOWN].tolist())]


def falling(run: RunRecord) -> list[Alert]:
    """Success from the target start falls: the last quarter beside the one before, within each context.

    Within contexts, because a rule draws harder contexts later: the mean over rollouts would fall by itself.
    """
    windows = run.about.windows
    at_target = run.rollouts.level == 0
    context, window = run.rollouts.context[at_target], run.rollouts.window[at_target]
    success = run.rollouts.success[at_target]
    length = max(1, windows // 4)
    periods = [(window >= start) & (window < start + length) for start in (windows - 2 * length, windows - length)]
    (n0, p0), (n1, p1) = (_rates(context[part], success[part], run.about.n_contexts) for part in periods)
    both = (n0 > 0) & (n1 > 0)
    if both.sum() < FEWEST:
        return []
    n0, n1, p0, p1 = n0[both], n1[both], p0[both], p1[both]
    weight = n0 * n1 / (n0 + n1)
    change = float(((p1 - p0) * weight).sum() / weight.sum())
    error = _error(weight, np.concatenate((p0 * n0, p1 * n1)).sum() / (n0 + n1).sum())
    if change > -DROP or change > -SURE * error:
        return []
    before, now = (float((p * weight).sum() / weight.sum()) for p in (p0, p1))
    text = (
        f"Success from the target start is falling: {before:.2f} in windows {run.about.first + windows - 2 * length:,} "
        f"to {run.about.first + windows - length - 1:,}, {now:.2f} since, over the same {int(both.sum())} contexts."
    )
    return [Alert("level 0 falling", text, [])]


def alike(run: RunRecord) -> list[Alert]:
    """Neighbouring levels that succeed equally often, in the same context and period."""
    levels = run.about.n_levels
    context, level, success = run.rollouts[1:]
    place = (run.rollouts.window // PERIOD).astype(np.int64) * run.about.n_contexts + context
    size = int(place.max()) + 1 if len(place) else 0
    by_level = [_rates(place[level == i], success[level == i], size) for i in range(levels)]
    pairs = []
    for harder, ((n0, p0), (n1, p1)) in enumerate(itertools.pairwise(by_level)):
        both = (n0 > 0) & (n1 > 0)
        if both.sum() < FEWEST:
            continue
        weight = n0[both] * n1[both] / (n0 + n1)[both]
        rates = [float((p[both] * weight).sum() / weight.sum()) for p in (p0, p1)]
        shared = float(np.mean(rates))
        bound = abs(rates[1] - rates[0]) + CERTAIN * _error(weight, shared)
        if bound <= ALIKE and BETWEEN[0] <= shared <= BETWEEN[1]:
            pairs.append((harder, rates))
    return [
        Alert(
            "levels alike",
            f"Levels {harder} and {harder + 1} look alike: success {rates[0]:.2f} and {rates[1]:.2f} in the same "
            "contexts and periods. One of the two rungs can go, or they should be further apart.",
            [],
        )
        for harder, rates in pairs
    ]


def _rates(
    place: NDArray[Any], success: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rollouts and success rate of each place."""
    n = np.bincount(place, minlength=size).astype(float)
    won = np.bincount(place, weights=success, minlength=size)
    return n, np.divide(won, n, out=np.zeros(size), where=n > 0)


def _error(weight: NDArray[np.float64], rate: float) -> float:
    """Standard error of a weighted mean of differences; ``weight`` is n0 * n1 / (n0 + n1) of each."""
    spread = max(rate * (1 - rate), 0.0475)  # that of 0.05: a few equal outcomes are no certainty
    return float(np.sqrt(spread / weight.sum()))


def _named(contexts: NDArray[np.int64]) -> str:
    first = ", ".join(map(str, contexts[:8].tolist()))
    more = f" and {len(contexts) - 8} more" if len(contexts) > 8 else ""
    return f"Context{'s' if len(contexts) > 1 else ''} {first}{more}"
