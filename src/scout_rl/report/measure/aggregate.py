"""Over all settings: how the reference and each rule do in the settings that have both, one block a setting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.choice import stands_for_its_setting
from scout_rl.report.measure.comparison import Score, reference_of
from scout_rl.report.measure.conditions import Block
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
"""Of one block: the reference's areas, and the others' by name."""
Scored = tuple[Block, list[Score]]


def aggregate_tables(blocks: Sequence[Scored]) -> list[Table]:
    """IQM of worst-group AUC, and how likely the reference beats each rule: a table a reference.

    One block stands for each setting; the others are named below. Settings are put together by rule where it has its
    own constants, whatever a sweep beside it makes its label, and by label otherwise. Settings of another reference are
    counted below the table that they are not in.
    """
    chosen, left_out = one_a_setting(blocks)
    by_reference: dict[str, list[Pair]] = defaultdict(list)
    for _, found in chosen:
        ours = reference_of(found)
        if ours is not None:
            names = _names(found)
            others = {name: s.worst_auc for name, s in zip(names, found, strict=True) if s is not ours}
            by_reference[ours.condition.reference_name].append((ours.worst_auc, others))
    told = [ONE_EACH.format("; ".join(left_out))] if left_out else []
    made = [_table(name, pairs, [*_elsewhere(name, by_reference), *told]) for name, pairs in by_reference.items()]
    return [table for table in made if table.rows]


def one_a_setting(blocks: Sequence[Scored]) -> tuple[list[Scored], list[str]]:
    """The block that stands for each setting, among those with a reference, and the labels of all others."""
    by_setting: dict[str, list[Block]] = defaultdict(list)
    for block, found in blocks:
        if reference_of(found) is not None:
            by_setting[block.setting].append(block)
    choices = [stands_for_its_setting(mine) for mine in by_setting.values()]
    kept = {id(choice.block) for choice in choices if choice is not None}
    chosen = [(block, found) for block, found in blocks if id(block) in kept]
    return chosen, [block.label for block, _ in blocks if id(block) not in kept]


def _names(found: list[Score]) -> list[str]:
    own = Counter(s.condition.rule for s in found if s.condition.own_constants)
    return [
        s.condition.rule if s.condition.own_constants and own[s.condition.rule] == 1 else s.condition.label
        for s in found
    ]


def _table(reference: str, pairs: list[Pair], notes: list[str]) -> Table:
    rows = []
    for rule in sorted({name for _, others in pairs for name in others}):
        shared = [(ours, others[rule]) for ours, others in pairs if rule in others]
        if len(shared) < 2:
            continue
        ours, theirs = [pair[0] for pair in shared], [pair[1] for pair in shared]
        cells = [
            shown_interval(stratified_bootstrap(interquartile_mean, given, rng=generator())) for given in (ours, theirs)
        ]
        better = stratified_bootstrap(probability_of_improvement, ours, theirs, rng=generator())
        rows.append([rule, str(len(shared)), str(sum(len(t) for t in theirs)), *cells, shown_interval(better)])
    title = TITLE if reference == "SCOUT" else f"{TITLE}: {reference}"
    header = ["rule", "settings", "n", f"IQM {reference} [95%]", "IQM rule [95%]", f"P({reference} better) [95%]"]
    return Table(title, header, rows, [NOTE, *notes])


def _elsewhere(reference: str, by_reference: dict[str, list[Pair]]) -> list[str]:
    others = [f"{name} ({len(pairs)})" for name, pairs in by_reference.items() if name != reference]
    return [f"Not in here, with the number of settings: those compared with {', '.join(others)}."] if others else []
