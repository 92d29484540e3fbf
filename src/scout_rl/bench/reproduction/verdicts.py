"""Ours beside the paper's, row by row, and the verdict: what `docs/reproduction.md` prints.

A row asks about one condition (``evidence_rows.toml``). Where records answer it, the verdict follows from the numbers
by the rules of ``judging``; nobody types one in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scout_rl.bench.reproduction import judging, paper
from scout_rl.report.measure.choice import Choice, alike, choose, fitting
from scout_rl.report.measure.comparison import over_seeds, window_of
from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import SOLVED, Summary
from scout_rl.report.measure.retention import retention
from scout_rl.report.measure.statistics import Interval, bootstrap, generator, paired

SHARE = "solved"
"""The metric that is 0 or 1 of a run: a median would be too, so shares of seeds are compared by their means."""


@dataclass(frozen=True)
class Row:
    """One question."""

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
    """Where the paper prints a difference and not the two numbers."""
    paper_ratio: float | None = None
    """Where it prints how many times SCOUT's value is the rule's."""
    says: str = ""

    @property
    def again(self) -> bool:
        """Whether another row asks the same with the paper's own setting and the tuned learner."""
        return self.setting in paper.THE_PAPERS or bool(self.preset)


@dataclass(frozen=True)
class Answer:
    """What records say to a row."""

    row: Row
    paper: paper.Number | None
    paper_difference: float | None
    ours: Interval | None = None
    difference: Interval | None = None
    """Paired: SCOUT minus the rule, or more levels minus fewer."""
    runs: tuple[Summary, ...] = ()
    seeds: int = 0
    """That the verdict rests on: those that all sides have."""
    mixed: bool = False
    """Whether some side's record does not say what it ran on (an earlier learner) and another's does."""
    areas: tuple[float, ...] = ()
    """Behind a share of gain: mean AUC with its ladder, with the hand-built one, and from the target start."""
    verdict: str = "not yet run"
    note: str = ""

    @property
    def claimed(self) -> bool:
        """Whether the paper says anything about the row, run or not."""
        own = self.row.rule == "scout" and not self.row.compare and self.paper is not None
        said = self.row.expect or self.row.paper_ratio
        return own or bool(said) or self.paper_difference is not None


def rows() -> list[Row]:
    """All of them, in the order of the page."""
    return [Row(**row) for row in paper.read("evidence_rows.toml")["row"]]


def answer(row: Row, blocks: Sequence[Block]) -> Answer:
    """Look a row up in the records."""
    number = paper.number(row.setting, row.rule, row.metric, row.ladder, row.levels)
    told = Answer(row, number, _paper_difference(row, number))
    if row.metric in ("retained", "self"):
        return _retained(told, blocks)
    choice = protocol(row, blocks)
    mine = None if choice is None else choice.block.of(row.rule)
    if choice is None or mine is None:
        return told
    block = choice.block
    reduce = over_seeds(block)[1] if row.metric.endswith("auc") else np.mean
    value = _values(row, block, mine)
    ours = bootstrap(np.array(list(value.values())), reduce, generator())
    doubt = _joined(choice.doubt, block.doubt(row.rule))
    told = replace(told, ours=ours, runs=mine.runs, seeds=len(value), note=doubt)
    if row.expect == judging.LOSES:
        return replace(told, verdict=judging.loses(ours.point))
    if row.rule == "scout" and not row.compare:
        return replace(told, verdict=judging.own(ours.point, None if number is None else number.value))
    return _compared(told, value, blocks, block)


def _compared(told: Answer, value: dict[int, float], blocks: Sequence[Block], block: Block) -> Answer:
    row, ours = told.row, told.ours
    beside = _other(row, blocks, block)
    if beside is None or ours is None:
        return replace(told, seeds=0)
    where, condition = beside
    other = _values(row, where, condition)
    sides = (value, other) if row.compare else (other, value)
    both = paired(*sides, np.mean if row.metric == SHARE else np.median)
    if both is None:
        return replace(told, seeds=0)
    theirs, found, note = told.paper_difference, both.difference.point, ""
    if row.paper_ratio is not None:
        theirs = (row.paper_ratio - 1) * ours.point
        note = f"SCOUT's value is {(ours.point + found) / ours.point:.2f} times the rule's" if ours.point else ""
    verdict = judging.against(found, theirs, row.expect)
    note = _joined(note, told.note, where.doubt(condition.rule))
    mixed = _mixed([told.runs, condition.runs])
    return replace(told, difference=both.difference, seeds=both.n, mixed=mixed, verdict=verdict, note=note)


def _mixed(sides: Sequence[Sequence[Summary]]) -> bool:
    """Seed by seed, over the seeds that all sides have."""
    said = [{run.about.seed: bool(run.about.ran_on) for run in side} for side in sides]
    shared = set.intersection(*(set(side) for side in said))
    return any(len({side[seed] for side in said}) > 1 for seed in shared)


def _paper_difference(row: Row, number: paper.Number | None) -> float | None:
    if row.paper_difference is not None:
        return row.paper_difference
    if number is None or row.rule == "scout" or row.expect == judging.LOSES:
        return None
    if number.difference is not None:
        return number.difference
    scout = paper.number(row.setting, "scout", row.metric, row.ladder, row.levels)
    return None if scout is None else scout.value - number.value


def _retained(told: Answer, blocks: Sequence[Block]) -> Answer:
    row = told.row
    found = retention(blocks, row.setting, row.ladder, row.levels, row.preset)
    if found is None:
        return told
    sides = [side.runs for side in (found.ladders.auto, found.ladders.by_hand, found.ladders.target)]
    told = replace(told, runs=sides[0], seeds=found.n, mixed=_mixed(sides), areas=found.areas, note=found.ladders.doubt)
    if not found.defined:
        note = f"the hand-built ladder gains {found.gain:+.2f} AUC over the target start: nothing to keep"
        return replace(told, verdict=judging.nothing_to_keep(found.gain), note=_joined(note, told.note))
    return replace(told, ours=found.ratio, verdict=judging.keeps(found.ratio.point))


def _joined(*notes: str) -> str:
    return "; ".join(dict.fromkeys(note for note in notes if note))


def protocol(row: Row, blocks: Sequence[Block]) -> Choice | None:
    """The block of this protocol: the setting's own learner and budget first (`choice.choose`)."""
    return choose(fitting(blocks, row.setting, row.ladder, row.levels, row.preset))


def _other(row: Row, blocks: Sequence[Block], block: Block) -> tuple[Block, Condition] | None:
    """What the row is compared with, and its block; levels are compared with levels where all else is the same."""
    rule, where = "scout", block
    if row.compare:
        rule, levels = row.rule, int(row.compare.removeprefix("levels "))
        found = [b for b in blocks if b.levels == levels and alike(b, block, ("levels",))]
        if not found:
            return None
        where = found[0]
    condition = where.of(rule)
    return None if condition is None else (where, condition)


def _values(row: Row, block: Block, condition: Condition) -> dict[int, float]:
    """The row's metric by seed, areas over the block's common window."""
    window = window_of(block)

    def one(run: Summary) -> float:
        if row.metric.startswith("final:"):
            return float(run.groups[row.metric.removeprefix("final:")][-1])
        areas = {"auc": run.auc, "worst_auc": run.worst_auc}
        if row.metric in areas:
            return areas[row.metric](window)
        ends = {"final": run.final, "worst_final": run.worst_final, SHARE: float(run.worst_final >= SOLVED)}
        return ends[row.metric]

    return {run.about.seed: one(run) for run in condition.runs}
