"""``scout diagnose``: did contexts need different paces, would less have been enough, and who is stuck."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from scout_rl.report.measure import pacing
from scout_rl.report.measure.metrics import interquartile_range, members_of
from scout_rl.report.measure.pacing import POOLED, Difference, Pacing
from scout_rl.report.measure.statistics import generator
from scout_rl.report.measure.stuck import REASONS, Stuck, find_stuck, gate_constant
from scout_rl.report.read.run import About, Run

SPREAD = 0.35
"""S.d. in levels between contexts from which sharing a level costs something; chance alone gives about 0.1 to 0.2."""
APART = 0.5
"""Levels between two groups, on average until they arrive, that are worth a frontier each."""
SUCCESS_APART, SUCCESS_SPREAD = 0.15, 0.08
"""The same in success at equal level and period (groups apart, s.d. between contexts), where contexts have no frontiers
of their own: two halves 0.15 apart have a standard deviation of 0.075."""
ALIKE = 0.01
"""Share of rollouts that must end each way before anything is said about pace."""
FEWEST = 4
"""Contexts below which nothing is said about pace."""

WAITING = 0.8
"""Share of time spent waiting for rollouts from which the evidence gate sets the pace, and not the contexts."""

VERDICTS = {
    "global": "One schedule for all contexts would have been enough: contexts hardly need different paces.",
    "group": "One frontier per group would have been enough, and one schedule for all would not.",
    "context": "Contexts need their own pace: one schedule for all, or one per group, would be far off for many.",
    "unlabelled": "One schedule for all contexts would be far off for many; whether groups would do cannot be said "
    "without labels (--groups).",
    "unknown": "Nothing can be said about pace: too few contexts or windows, or (almost) every rollout ends alike.",
}


@dataclass(frozen=True)
class Diagnosis:
    """What is said about one run, and what it rests on."""

    about: About
    verdict: str
    """A key of ``VERDICTS``."""
    pacing: Pacing | None
    groups: tuple[str, ...]
    stuck: list[Stuck]

    def sentences(self) -> list[str]:
        """For people."""
        a = self.about
        told = [
            f"{a.name}: {a.rule}{f' on {a.setting}' if a.setting else ''}, seed {a.seed}, {a.n_contexts} contexts, "
            f"{a.n_levels} levels, {a.windows} windows{f' from window {a.first + 1} on' if a.first else ''}."
        ]
        return told + self._about_pace() + self._about_stuck()

    def _about_pace(self) -> list[str]:
        told = [VERDICTS[self.verdict]]
        found = self.pacing
        if found is None:
            return told
        chance = "more than chance gives" if found.within.beyond_chance else "no more than chance gives"
        whom = "contexts of one group" if found.between is not None else "contexts"
        told.append(
            f"At equal level and period {whom} differ in success by a standard deviation of {found.within.size:.2f}, "
            f"{chance} (p = {found.within.p:.3f})."
        )
        if found.between is not None:
            apart = "levels apart on average until they arrive" if found.own_frontiers else "in success apart"
            told.append(
                f"Groups {', '.join(self.groups)}: {found.between.size:.2f} {apart} (p = {found.between.p:.3f})."
            )
        if found.own_frontiers:
            spread = ", ".join(f"{name} {value:.2f}" for name, value in found.dispersion.items())
            told.append(
                f"Frontier dispersion (IQR, mean over windows): {spread}. A shared level is off by {found.spread:.2f} "
                f"levels (s.d. between contexts, averaged over time)"
                + (f", one per group by {found.spread_in_group:.2f}." if found.between is not None else ".")
            )
        else:
            told.append("This rule gives contexts no frontiers of their own, so pace is judged by success alone.")
        if found.gathering is not None:
            waited = f"{found.gathering:.0%} of the time above the target start a context waited for rollouts"
            told.append(
                f"The evidence gate sets the pace: {waited}. With fewer contexts, larger windows or a smaller "
                f"{gate_constant(self.about.rule) or 'evidence gate'} "
                "frontiers would move more often: that may help, and may show differences that this run hides."
                if found.gathering >= WAITING
                else f"{waited}, the rest for success."
            )
        told.append("This is what the records of this one run show, not a run of the other schedule.")
        return told

    def _about_stuck(self) -> list[str]:
        if not self.stuck:
            return ["No context is stuck."]
        told = [f"Stuck: {len(self.stuck)} of {self.about.n_contexts} contexts."]
        by_reason: dict[str, list[Stuck]] = defaultdict(list)
        for one in self.stuck:
            by_reason[one.reason].append(one)
        for reason, ones in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
            named = ", ".join(str(one.context) for one in ones[:12]) + (", …" if len(ones) > 12 else "")
            told.append(f"  {reason} ({len(ones)}): {REASONS[reason]}.")
            told.append(f"    contexts {named}; for example {ones[0].context}: {ones[0].evidence}.")
        return told


def diagnose(run: Run) -> Diagnosis:
    """Judge one run by its records; one that has closed no window yet is refused."""
    if not run.about.windows:
        raise ValueError(f"{run.about.name} holds no closed window yet: there is nothing to diagnose")
    found = _measure(run)
    return Diagnosis(run.about, _verdict(run, found), found, run.groups, find_stuck(run))


def _measure(run: Run) -> Pacing | None:
    n = run.about.n_contexts
    if n < FEWEST or run.about.windows < 2 * pacing.PERIOD or not ALIKE < run.played.success.mean() < 1 - ALIKE:
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


def _verdict(run: Run, found: Pacing | None) -> str:
    if found is None:
        return "unknown"
    if found.own_frontiers:
        inside = found.within.beyond_chance and found.spread_in_group >= SPREAD
        across = _matters(found.between, APART)
    else:
        inside = _matters(found.within, SUCCESS_SPREAD)
        across = _matters(found.between, SUCCESS_APART)
    if inside:
        return "context" if run.context_group is not None else "unlabelled"
    return "group" if across else "global"


def _matters(found: Difference | None, least: float) -> bool:
    return found is not None and found.beyond_chance and found.size >= least
