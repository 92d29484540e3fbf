"""``scout diagnose``: whether contexts needed different paces, whether less would do, and which are stuck."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from scout_rl.files.refusal import Refusal
from scout_rl.report.measure import pacing
from scout_rl.report.measure.metrics import interquartile_range, members_of
from scout_rl.report.measure.paces import Paces, paces
from scout_rl.report.measure.pacing import POOLED, Difference, Pacing
from scout_rl.report.measure.statistics import generator
from scout_rl.report.measure.stuck import REASONS, Stuck, find_stuck, gate_constant
from scout_rl.report.measure.tables import counted
from scout_rl.report.read.run import About, RunRecord

SPREAD = 0.35
"""S.d. in levels between contexts from which a shared level is too coarse; chance alone gives about 0.1 to 0.2."""
APART = 0.5
"""Mean distance of two groups in levels from which each needs its own frontier."""
SUCCESS_APART, SUCCESS_SPREAD = 0.15, 0.08
"""The same in success at equal level and period, for contexts without frontiers of their own: distance of two groups,
s.d. between contexts. Two halves 0.15 apart have an s.d. of 0.075."""
ALIKE = 0.01
"""A verdict on pace needs this share of successes, and of failures."""
FEWEST = 4
"""A verdict on pace needs this many contexts."""

WAITING = 0.8
"""Share of time spent waiting for rollouts from which the evidence gate sets the pace."""

VERDICTS = {
    "global": "One schedule for all contexts would have been enough: it would hardly be off for any.",
    "group": "One frontier per group would have been enough, and one schedule for all would not.",
    "context": "Contexts need their own pace: one schedule for all, or one per group, would be far off for many.",
    "unlabelled": "One schedule for all contexts would be far off for many; whether groups would do cannot be said "
    "without labels (--groups).",
    "unknown": "Nothing can be said about pace: too few contexts or windows, or (almost) every rollout ends alike.",
}
BOTH = {
    True: "Both hold: contexts differ in success at equal level, but not by enough to be levels apart.",
    False: "Both hold: contexts differ little in success at equal level, and that adds up over time.",
}
"""Said where one schedule would do for several paces, or would not do for one."""


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on one run, and the numbers behind it."""

    about: About
    verdict: str
    """A key of ``VERDICTS``."""
    pacing: Pacing | None
    groups: tuple[str, ...]
    stuck: list[Stuck]
    paces: Paces | None = None
    """How many paces the model sees; None where nothing can be said about pace."""

    def sentences(self) -> list[str]:
        """The diagnosis in sentences."""
        a = self.about
        first = [
            f"{a.name}: {a.rule}{f' on {a.setting}' if a.setting else ''}, seed {a.seed}, "
            f"{counted(a.n_contexts, 'context')}, {counted(a.n_levels, 'level')}, {counted(a.windows, 'window')}"
            f"{f' from window {a.first + 1} on' if a.first else ''}."
        ]
        return first + self._about_pace() + self._about_stuck()

    def _about_pace(self) -> list[str]:
        sentences = [VERDICTS[self.verdict]]
        pace = self.pacing
        if pace is None:
            return sentences
        chance = "more than chance gives" if pace.within.beyond_chance else "no more than chance gives"
        whom = "contexts of one group" if pace.between is not None else "contexts"
        sentences.append(
            f"At equal level and period {whom} differ in success by a standard deviation of {pace.within.size:.2f}, "
            f"{chance} (p = {pace.within.p:.3f})."
        )
        if pace.between is not None:
            apart = "levels apart on average until they arrive" if pace.own_frontiers else "in success apart"
            sentences.append(
                f"Groups {', '.join(self.groups)}: {pace.between.size:.2f} {apart} (p = {pace.between.p:.3f})."
            )
        if pace.own_frontiers:
            spread = ", ".join(f"{name} {value:.2f}" for name, value in pace.dispersion.items())
            sentences.append(
                f"Frontier dispersion (IQR, mean over windows): {spread}. A shared level is off by {pace.spread:.2f} "
                f"levels (s.d. between contexts, averaged over time)"
                + (f", one per group by {pace.spread_in_group:.2f}." if pace.between is not None else ".")
            )
        else:
            sentences.append("This rule gives contexts no frontiers of their own, so pace is judged by success alone.")
        if pace.gathering is not None:
            waited = f"{pace.gathering:.0%} of the time above the target start a context waited for rollouts"
            sentences.append(
                f"The evidence gate sets the pace: {waited}. With fewer contexts, larger windows or a smaller "
                f"{gate_constant(self.about.rule) or 'evidence gate'} "
                "frontiers would move more often: that may help, and may show differences that this run hides."
                if pace.gathering >= WAITING
                else f"{waited}, the rest for success."
            )
        if self.paces is not None:
            sentences.append(self.paces.sentence)
            if (self.verdict == "global") != (self.paces.number == 1):
                sentences.append(BOTH[self.verdict == "global"])
        sentences.append("This is what the records of this one run show, not a run of the other schedule.")
        return sentences

    def _about_stuck(self) -> list[str]:
        if not self.stuck:
            return ["No context is stuck."]
        sentences = [f"Stuck: {len(self.stuck)} of {counted(self.about.n_contexts, 'context')}."]
        by_reason: dict[str, list[Stuck]] = defaultdict(list)
        for stuck in self.stuck:
            by_reason[stuck.reason].append(stuck)
        for reason, contexts in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
            named = ", ".join(str(stuck.context) for stuck in contexts[:12]) + (", …" if len(contexts) > 12 else "")
            sentences.append(f"  {reason} ({len(contexts)}): {REASONS[reason]}.")
            whom = f"context{'s' * (len(contexts) > 1)} {named}"
            sentences.append(f"    {whom}; for example {contexts[0].context}: {contexts[0].evidence}.")
        return sentences


def diagnose(run: RunRecord) -> Diagnosis:
    """Judge one run by its records. A run without a closed window is refused."""
    if not run.about.windows:
        raise Refusal(f"{run.about.name} holds no closed window yet: there is nothing to diagnose")
    pace = _measure(run)
    model_view = None if pace is None else paces(run)
    return Diagnosis(run.about, _verdict(run, pace), pace, run.groups, find_stuck(run), model_view)


def _measure(run: RunRecord) -> Pacing | None:
    n = run.about.n_contexts
    if n < FEWEST or run.about.windows < 2 * pacing.PERIOD or not ALIKE < run.rollouts.success.mean() < 1 - ALIKE:
        return None
    group = np.zeros(n, np.int64) if run.context_group is None else run.context_group
    many = len(np.unique(group)) > 1
    rng = generator()
    within = pacing.success_between_contexts(run, group, rng)
    if run.frontier is None or run.about.rule in POOLED:
        between = pacing.success_between_groups(run, group, rng) if many else None
        return Pacing(False, within, between, float("nan"), float("nan"), {}, None)
    between = pacing.levels_between_groups(run, group, rng) if many else None
    whole, inside = (pacing.level_spread(run.frontier, labels) for labels in (np.zeros_like(group), group))
    spread = {name: float(interquartile_range(run.frontier[:, x]).mean()) for name, x in members_of(run).items()}
    return Pacing(True, within, between, whole, inside, spread, pacing.gathering_share(run))


def _verdict(run: RunRecord, pace: Pacing | None) -> str:
    if pace is None:
        return "unknown"
    if pace.own_frontiers:
        inside = pace.within.beyond_chance and pace.spread_in_group >= SPREAD
        across = _matters(pace.between, APART)
    else:
        inside = _matters(pace.within, SUCCESS_SPREAD)
        across = _matters(pace.between, SUCCESS_APART)
    if inside:
        return "context" if run.context_group is not None else "unlabelled"
    return "group" if across else "global"


def _matters(difference: Difference | None, least: float) -> bool:
    return difference is not None and difference.beyond_chance and difference.size >= least
