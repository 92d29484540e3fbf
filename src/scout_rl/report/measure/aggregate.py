"""The reference and each rule over all settings that have both, one block per setting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.choice import representative
from scout_rl.report.measure.comparison import Score, reference_of
from scout_rl.report.measure.conditions import PAPERS, Block, title
from scout_rl.report.measure.statistics import (
    generator,
    interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
)
from scout_rl.report.measure.tables import Table, shown_interval

TITLE = "Over all settings that have both"
NOTE = "Worst-group AUC; seeds are resampled within each setting. Settings differ in scale: read with their tables."
ONE_EACH = (
    "Each setting counts once, by one block: preset tuned, the setting's own learner and budget, a hand-built ladder "
    "and five levels, as far as it has them. Left out: {}."
)
Areas = NDArray[np.float64]
Pair = tuple[Areas, dict[str, Areas]]
"""AUC in one block: the reference's, and the others' by name."""
Scored = tuple[Block, list[Score]]


def aggregate_tables(blocks: Sequence[Scored]) -> list[Table]:
    """IQM of worst-group AUC, and how likely the reference beats each rule: one table per reference.

    One block represents each setting; notes name the others. Conditions of different settings belong together if they
    have the same rule with default constants, or the same label. Notes count the settings of other references.
    """
    representatives, left_out = one_per_setting(blocks)
    by_reference: dict[str, list[Pair]] = defaultdict(list)
    for block, scores in representatives:
        ours = reference_of(block, scores)
        if ours is not None:
            names = _names(scores)
            others = {name: s.worst_auc for name, s in zip(names, scores, strict=True) if s is not ours}
            by_reference[ours.condition.reference_name].append((ours.worst_auc, others))
    notes = [ONE_EACH.format("; ".join(left_out))] if left_out else []
    tables = [_table(name, pairs, [*_elsewhere(name, by_reference), *notes]) for name, pairs in by_reference.items()]
    return [table for table in tables if table.rows]


def one_per_setting(blocks: Sequence[Scored]) -> tuple[list[Scored], list[str]]:
    """The block that represents each setting, among those with a reference, and the labels of all others."""
    by_setting: dict[str, list[Block]] = defaultdict(list)
    for block, scores in blocks:
        if reference_of(block, scores) is not None:
            by_setting[block.setting].append(block)
    choices = [representative(candidates) for candidates in by_setting.values()]
    kept = {id(choice.block) for choice in choices if choice is not None}
    representatives = [(block, scores) for block, scores in blocks if id(block) in kept]
    return representatives, [block.label for block, _ in blocks if id(block) not in kept]


def _names(scores: list[Score]) -> list[str]:
    conditions = [s.condition for s in scores]
    n_default = Counter(c.rule for c in conditions if c.has_default_constants)
    return [c.rule if c.has_default_constants and n_default[c.rule] == 1 else c.label for c in conditions]


def _table(reference: str, pairs: list[Pair], notes: list[str]) -> Table:
    rows = []
    for rule in sorted({name for _, others in pairs for name in others}):
        shared = [(ours, others[rule]) for ours, others in pairs if rule in others]
        if len(shared) < 2:
            continue
        ours, theirs = [pair[0] for pair in shared], [pair[1] for pair in shared]
        means = [stratified_bootstrap(interquartile_mean, side, rng=generator()) for side in (ours, theirs)]
        better = stratified_bootstrap(probability_of_improvement, ours, theirs, rng=generator())
        counts = str(len(shared)), str(sum(len(t) for t in theirs))
        rows.append([rule, *counts, *map(shown_interval, (*means, better))])
    heading = TITLE if reference == title(PAPERS) else f"{TITLE}: {reference}"
    header = ["rule", "settings", "n", f"IQM {reference} [95%]", "IQM rule [95%]", f"P({reference} better) [95%]"]
    return Table(heading, header, rows, [NOTE, *notes])


def _elsewhere(reference: str, by_reference: dict[str, list[Pair]]) -> list[str]:
    others = [f"{name} ({len(pairs)})" for name, pairs in by_reference.items() if name != reference]
    return [f"Not in here, with the number of settings: those compared with {', '.join(others)}."] if others else []
