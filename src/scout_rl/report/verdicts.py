"""Ours beside the paper's, row by row, and the verdict: what `docs/reproduction.md` prints.

A row asks about one condition (``evidence_rows.toml``). Where records answer it, the verdict follows from the numbers
by the rules of ``judging``; nobody types one in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scout_rl.report import judging, paper
from scout_rl.report.comparison import BY_MEAN, Runs, retention, window_of
from scout_rl.report.conditions import USUAL, Condition
from scout_rl.report.metrics import SOLVED, Summary, common_window
from scout_rl.report.statistics import Interval, bootstrap, generator, paired
from scout_rl.settings import SETTINGS

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
    """One of ``judging.EXPECTED``: what the paper says without numbers."""
    paper_difference: float | None = None
    """Where the paper prints a difference and not the two numbers."""
    paper_ratio: float | None = None
    """Where it prints how many times SCOUT's value is the rule's."""
    says: str = ""

    @property
    def again(self) -> bool:
        """Whether another row asks the same with the paper's own setting and the tuned learner."""
        return self.setting in paper.THE_PAPERS or self.preset == "paper"


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


def answer(row: Row, blocks: Sequence[Runs]) -> Answer:
    """Look a row up in the records."""
    number = paper.number(row.setting, row.rule, row.metric, row.ladder, row.levels)
    told = Answer(row, number, _paper_difference(row, number))
    if row.metric in ("retained", "self"):
        return _retained(told, blocks)
    block = protocol(row, blocks, row.levels)
    mine = with_own_constants(block, row.rule)
    if block is None or mine is None:
        return told
    mean = row.setting in BY_MEAN or not row.metric.endswith("auc")
    reduce: Callable[..., NDArray[np.float64]] = np.mean if mean else np.median
    value = _values(row, block, mine)
    ours = bootstrap(np.array(list(value.values())), reduce, generator())
    told = replace(told, ours=ours, runs=mine.runs, seeds=len(value))
    if row.expect == judging.LOSES:
        return replace(told, verdict=judging.loses(ours.point))
    if row.rule == "scout" and not row.compare:
        return replace(told, verdict=judging.own(ours.point, None if number is None else number.value))
    return _compared(told, value, *_other(row, blocks, block))


def _compared(told: Answer, value: dict[int, float], other: dict[int, float], runs: Sequence[Summary]) -> Answer:
    row, ours = told.row, told.ours
    sides = (value, other) if row.compare else (other, value)
    both = paired(*sides, np.mean if row.metric == SHARE else np.median)
    if both is None or ours is None:
        return replace(told, seeds=0)
    theirs, found, note = told.paper_difference, both.difference.point, ""
    if row.paper_ratio is not None:
        theirs = (row.paper_ratio - 1) * ours.point
        note = f"SCOUT's value is {(ours.point + found) / ours.point:.2f} times the rule's" if ours.point else ""
    verdict = judging.against(found, theirs, row.expect)
    mixed = _mixed([told.runs, runs])
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


def _retained(told: Answer, blocks: Sequence[Runs]) -> Answer:
    row = told.row
    found = retention(blocks, row.setting, row.ladder)
    sides = _three_ladders(row, blocks)
    if found is None or sides is None:
        return told
    told = replace(told, runs=sides[0], seeds=found.n, mixed=_mixed(sides), areas=tuple(_mean_areas(sides)))
    if not found.defined:
        note = f"the hand-built ladder gains {found.gain:+.2f} AUC over the target start: nothing to keep"
        return replace(told, verdict=judging.nothing_to_keep(found.gain), note=note)
    return replace(told, ours=found.ratio, verdict=judging.keeps(found.ratio.point))


def _three_ladders(row: Row, blocks: Sequence[Runs]) -> list[tuple[Summary, ...]] | None:
    """The runs behind a share of gain: with the row's ladder, the hand-built one, and from the target start."""
    by_hand = replace(row, ladder=str(USUAL["ladder"]))
    sought = (row, "scout"), (by_hand, "scout"), (by_hand, "target")
    found = [with_own_constants(protocol(asked, blocks, row.levels), rule) for asked, rule in sought]
    return None if None in found else [condition.runs for condition in found if condition is not None]


def _mean_areas(sides: Sequence[Sequence[Summary]]) -> list[float]:
    """Mean AUC of each side, over the window and the seeds that all have."""
    window = common_window(run.at for side in sides for run in side)
    seeds = set.intersection(*({run.about.seed for run in side} for side in sides))
    return [float(np.mean([run.auc(window) for run in side if run.about.seed in seeds])) for side in sides]


def protocol(row: Row, blocks: Sequence[Runs], levels: int) -> Runs | None:
    """The block of this protocol: the setting's own learner and budget first, then the most runs.

    The preset is ``paper`` only where the row says so.
    """
    fitting = [
        b
        for b in blocks
        if (b.setting, b.fields.get("ladder", "manual"), int(b.fields.get("levels", 5)))
        == (row.setting, row.ladder, levels)
        and (b.fields.get("preset") == "paper") == (row.preset == "paper")
    ]
    usual = SETTINGS[row.setting]

    def worth(block: Runs) -> tuple[bool, bool, int]:
        algorithm, windows = block.fields.get("algorithm") or usual.learner, block.fields.get("windows")
        return algorithm == usual.learner, windows == usual.windows, sum(len(c.runs) for c in block.conditions)

    return max(fitting, key=worth, default=None)


def with_own_constants(block: Runs | None, rule: str) -> Condition[Summary] | None:
    """The rule with its own constants: a sweep over others is another question."""
    return None if block is None else block.of(rule)


def _other(row: Row, blocks: Sequence[Runs], block: Runs) -> tuple[dict[int, float], Sequence[Summary]]:
    """What the row is compared with, by seed, and the runs behind it; empty where there are none."""
    where = protocol(row, blocks, int(row.compare.removeprefix("levels "))) if row.compare else block
    condition = with_own_constants(where, row.rule if row.compare else "scout")
    return ({}, ()) if where is None or condition is None else (_values(row, where, condition), condition.runs)


def _values(row: Row, block: Runs, condition: Condition[Summary]) -> dict[int, float]:
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
