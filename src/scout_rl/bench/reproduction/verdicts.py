"""Our numbers beside the paper's and the verdict, row by row, for `docs/reproduction.md`.

A row asks about one condition (``evidence_rows.toml``). The verdict follows from the records by the rules of
``judging``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scout_rl.bench.reproduction import judging, paper
from scout_rl.report.measure.choice import alike, choose, fitting
from scout_rl.report.measure.comparison import over_seeds, window_of
from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import SOLVED, Summary
from scout_rl.report.measure.retention import retention
from scout_rl.report.measure.statistics import Interval, bootstrap, generator, paired

SOLVED_SHARE = "solved"
"""A metric that is 0 or 1 per run, so seeds are compared by the mean, not the median."""


@dataclass(frozen=True)
class Row:
    """One question about a condition."""

    setting: str
    rule: str
    metric: str
    ladder: str = "manual"
    levels: int = 5
    preset: str = ""
    compare: str = ""
    """``levels 5``: against the same rule with that many levels; empty: against SCOUT."""
    expect: str = ""
    """What the paper says without a number: a side, ``not behind``, ``loses a group``; empty: nothing."""
    paper_difference: float | None = None
    """If the paper prints a difference and not the two numbers."""
    paper_ratio: float | None = None
    """If it prints how many times SCOUT's value is the rule's."""
    says: str = ""

    @property
    def again(self) -> bool:
        """Whether another row asks the same with the paper's setting and the tuned learner."""
        return self.setting in paper.PAPER_SETTING or bool(self.preset)


@dataclass(frozen=True)
class Answer:
    """The answer of the records to a row."""

    row: Row
    paper: paper.Number | None
    paper_difference: float | None
    ours: Interval | None = None
    difference: Interval | None = None
    """Paired: SCOUT minus the rule, or more levels minus fewer."""
    runs: tuple[Summary, ...] = ()
    seeds: int = 0
    """Number of seeds behind the verdict: those that all sides have."""
    mixed: bool = False
    """Whether one side's record names its machine and another's does not (an earlier learner)."""
    areas: tuple[float, ...] = ()
    """For a share of gain: mean AUC with its ladder, with the hand-built one, and from the target start."""
    verdict: str = "not yet run"
    note: str = ""

    @property
    def claimed(self) -> bool:
        """Whether the paper says anything about the row."""
        own_value = self.row.rule == "scout" and not self.row.compare and self.paper is not None
        expected = self.row.expect or self.row.paper_ratio
        return own_value or bool(expected) or self.paper_difference is not None


def rows() -> list[Row]:
    """All rows, in the order of the page."""
    return [Row(**row) for row in paper.read("evidence_rows.toml")["row"]]


def answer(row: Row, blocks: Sequence[Block]) -> Answer:
    """Answer a row from the records."""
    number = paper.number(row.setting, row.rule, row.metric, row.ladder, row.levels)
    result = Answer(row, number, _paper_difference(row, number))
    if row.metric in ("retained", "self"):
        return _retained(result, blocks)
    choice = choose(fitting(blocks, row.setting, row.ladder, row.levels, row.preset))
    condition = None if choice is None else choice.block.of(row.rule)
    if choice is None or condition is None:
        return result
    block = choice.block
    reduce = over_seeds(block)[1] if row.metric.endswith("auc") else np.mean
    value = _values(row, block, condition)
    ours = bootstrap(np.array(list(value.values())), reduce, generator())
    doubt = _join_notes(choice.doubt, block.doubt(row.rule))
    result = replace(result, ours=ours, runs=condition.runs, seeds=len(value), note=doubt)
    if row.expect == judging.LOSES:
        return replace(result, verdict=judging.lost_group_verdict(ours.point))
    if row.rule == "scout" and not row.compare:
        return replace(result, verdict=judging.value_verdict(ours.point, None if number is None else number.value))
    return _compared(result, value, blocks, block)


def _compared(result: Answer, value: dict[int, float], blocks: Sequence[Block], block: Block) -> Answer:
    row, ours = result.row, result.ours
    opponent = _opponent(row, blocks, block)
    if opponent is None or ours is None:
        return replace(result, seeds=0)
    where, condition = opponent
    others = _values(row, where, condition)
    sides = (value, others) if row.compare else (others, value)
    both = paired(*sides, np.mean if row.metric == SOLVED_SHARE else np.median)
    if both is None:
        return replace(result, seeds=0)
    theirs, difference, note = result.paper_difference, both.difference.point, ""
    if row.paper_ratio is not None:
        theirs = (row.paper_ratio - 1) * ours.point
        note = f"SCOUT's value is {(ours.point + difference) / ours.point:.2f} times the rule's" if ours.point else ""
    verdict = judging.difference_verdict(difference, theirs, row.expect)
    note = _join_notes(note, result.note, where.doubt(condition.rule))
    mixed = _mixed([result.runs, condition.runs])
    return replace(result, difference=both.difference, seeds=both.n, mixed=mixed, verdict=verdict, note=note)


def _mixed(sides: Sequence[Sequence[Summary]]) -> bool:
    """`Answer.mixed`, over the seeds that all sides have."""
    known = [{run.about.seed: bool(run.about.ran_on) for run in side} for side in sides]
    shared = set.intersection(*(set(side) for side in known))
    return any(len({side[seed] for side in known}) > 1 for seed in shared)


def _paper_difference(row: Row, number: paper.Number | None) -> float | None:
    if row.paper_difference is not None:
        return row.paper_difference
    if number is None or row.rule == "scout" or row.expect == judging.LOSES:
        return None
    if number.difference is not None:
        return number.difference
    scout = paper.number(row.setting, "scout", row.metric, row.ladder, row.levels)
    return None if scout is None else scout.value - number.value


def _retained(result: Answer, blocks: Sequence[Block]) -> Answer:
    row = result.row
    kept = retention(blocks, row.setting, row.ladder, row.levels, row.preset)
    if kept is None:
        return result
    sides = [side.runs for side in kept.sides]
    result = replace(result, runs=sides[0], seeds=kept.n, mixed=_mixed(sides), areas=kept.areas, note=kept.doubt)
    if not kept.defined:
        note = f"the hand-built ladder gains {kept.gain:+.2f} AUC over the target start: nothing to keep"
        return replace(result, verdict=judging.no_gain_verdict(kept.gain), note=_join_notes(note, result.note))
    return replace(result, ours=kept.ratio, verdict=judging.retention_verdict(kept.ratio.point))


def _join_notes(*notes: str) -> str:
    return "; ".join(dict.fromkeys(note for note in notes if note))


def _opponent(row: Row, blocks: Sequence[Block], block: Block) -> tuple[Block, Condition] | None:
    """The condition that the row is compared with, and its block."""
    rule, where = "scout", block
    if row.compare:
        rule, levels = row.rule, int(row.compare.removeprefix("levels "))
        matching = [b for b in blocks if b.levels == levels and alike(b, block, ("levels",))]
        if not matching:
            return None
        where = matching[0]
    condition = where.of(rule)
    return None if condition is None else (where, condition)


def _values(row: Row, block: Block, condition: Condition) -> dict[int, float]:
    """The row's metric by seed; AUC is over the block's common window."""
    window = window_of(block)

    def value(run: Summary) -> float:
        if row.metric.startswith("final:"):
            return float(run.groups[row.metric.removeprefix("final:")][-1])
        areas = {"auc": run.auc, "worst_auc": run.worst_auc}
        if row.metric in areas:
            return areas[row.metric](window)
        ends = {"final": run.final, "worst_final": run.worst_final, SOLVED_SHARE: float(run.worst_final >= SOLVED)}
        return ends[row.metric]

    return {run.about.seed: value(run) for run in condition.runs}
