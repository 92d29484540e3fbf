"""Plain sentences on what a block of runs allows to say: from intervals and n, never from means alone."""

from __future__ import annotations

from scout_rl.report.measure.comparison import Score, reference_of
from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.statistics import generator, self_check
from scout_rl.report.measure.tables import shown_interval

ENOUGH = 5
"""Paired seeds from which an interval is trusted: its coverage is about 94% at five, 87% at four, 75% at three."""

VARIANT = "There is no SCOUT with its own constants here: everything is compared with {}."


def conclude(block: Block, found: list[Score]) -> list[str]:
    """Who is ahead of whom, what stays open, and what the seeds alone make of a difference."""
    reference = reference_of(found)
    if reference is None:
        return ["No SCOUT run to compare with: the table describes, nothing is concluded."]
    others = [s for s in found if s is not reference]
    name = reference.condition.reference_name
    if not others:
        return [f"{name} alone: the table describes, nothing is compared."]
    metric = "worst-group AUC" if len(block.conditions[0].runs[0].groups) > 1 else "AUC"
    told = [] if reference.condition.own_constants else [VARIANT.format(name)]
    ahead, behind, open_, few = [], [], [], []
    for s in others:
        if s.paired is None or s.paired.n < ENOUGH:
            few.append(f"{s.condition.label} ({s.paired.n if s.paired else 0})")
        elif s.paired.difference.low > 0:
            ahead.append(_told(s))
        elif s.paired.difference.high < 0:
            behind.append(_told(s))
        else:
            open_.append(_told(s))
    if ahead:
        told.append(f"{name}'s {metric} is higher than that of {'; '.join(ahead)}.")
    if behind:
        told.append(f"{name}'s {metric} is lower than that of {'; '.join(behind)}.")
    if open_:
        told.append(f"No difference can be told from {'; '.join(open_)}: the interval holds 0.")
    if few:
        told.append(
            f"Nothing may be concluded about {', '.join(few)}: an interval needs at least {ENOUGH} paired seeds, and "
            "the number there is stands in brackets."
        )
    if ahead or behind:
        told.append(_family(others))
    return told + _against_itself(reference, metric)


def _told(s: Score) -> str:
    assert s.paired is not None
    return f"{s.condition.label} ({shown_interval(s.paired.difference, sign=True)}, n = {s.paired.n})"


def _family(others: list[Score]) -> str:
    kept = [s.condition.label for s in others if s.holm is not None and s.holm < 0.05]
    if kept:
        return f"The sign test survives the Holm-Bonferroni correction against {', '.join(kept)}."
    return "No sign test survives the Holm-Bonferroni correction; the sentence rests on the bootstrap intervals."


def _against_itself(reference: Score, metric: str) -> list[str]:
    check = self_check(reference.worst_auc, generator())
    if check is None:
        return []
    return [
        f"{reference.condition.reference_name} against itself on disjoint halves of its seeds: {check.found} of "
        f"{check.splits} splits show a difference that is none, and halves "
        f"differ by up to {check.widest:.2f} in {metric}; less may be the seeds."
    ]
