"""What a block of runs shows, in sentences: from intervals and n, never from means alone."""

from __future__ import annotations

from scout_rl.report.measure.comparison import Score, reference_of
from scout_rl.report.measure.conditions import Block, title
from scout_rl.report.measure.statistics import generator, self_check
from scout_rl.report.measure.tables import shown_interval

ENOUGH = 5
"""Paired seeds that a conclusion needs. Intervals of five seeds cover about 94%, of four 87%, of three 75%."""

VARIANT = "There is no {} with its own constants here: everything is compared with {}."


def conclude(block: Block, scores: list[Score]) -> list[str]:
    """Which rules are ahead or behind, what is undecided, and how far seeds alone differ."""
    reference = reference_of(block, scores)
    if reference is None:
        return [f"No {title(block.chosen)} run to compare with: the table describes, nothing is concluded."]
    others = [s for s in scores if s is not reference]
    name = reference.condition.reference_name
    if not others:
        return [f"{name} alone: the table describes, nothing is compared."]
    metric = "worst-group AUC" if len(block.groups) > 1 else "AUC"
    sentences = []
    if not reference.condition.has_default_constants:
        sentences.append(VARIANT.format(title(reference.condition.rule), name))
    ahead, behind, undecided, few = [], [], [], []
    for s in others:
        if s.paired is None or s.paired.n < ENOUGH:
            few.append(f"{s.condition.label} ({s.paired.n if s.paired else 0})")
        elif s.paired.difference.low > 0:
            ahead.append(_with_interval(s))
        elif s.paired.difference.high < 0:
            behind.append(_with_interval(s))
        else:
            undecided.append(_with_interval(s))
    if ahead:
        sentences.append(f"{name}'s {metric} is higher than that of {'; '.join(ahead)}.")
    if behind:
        sentences.append(f"{name}'s {metric} is lower than that of {'; '.join(behind)}.")
    if undecided:
        sentences.append(f"No difference can be told from {'; '.join(undecided)}: the interval holds 0.")
    if few:
        sentences.append(
            f"Nothing may be concluded about {', '.join(few)}: an interval needs at least {ENOUGH} paired seeds, and "
            "the number there is stands in brackets."
        )
    if ahead or behind:
        sentences.append(_after_correction(others))
    return sentences + _against_itself(reference, metric)


def _with_interval(s: Score) -> str:
    assert s.paired is not None
    return f"{s.condition.label} ({shown_interval(s.paired.difference, sign=True)}, n = {s.paired.n})"


def _after_correction(others: list[Score]) -> str:
    significant = [s.condition.label for s in others if s.holm is not None and s.holm < 0.05]
    if significant:
        return f"The sign test survives the Holm-Bonferroni correction against {', '.join(significant)}."
    return "No sign test survives the Holm-Bonferroni correction; the sentence rests on the bootstrap intervals."


def _against_itself(reference: Score, metric: str) -> list[str]:
    check = self_check(reference.worst_auc, generator())
    if check is None:
        return []
    return [
        f"{reference.condition.reference_name} against itself on disjoint halves of its seeds: {check.discoveries} of "
        f"{check.splits} splits show a difference that is none, and halves "
        f"differ by up to {check.widest:.2f} in {metric}; less may be the seeds."
    ]
