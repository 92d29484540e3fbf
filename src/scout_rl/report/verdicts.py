"""Ours beside the paper's, row by row, and the verdict: what `docs/reproduction.md` prints.

A row asks about one condition (``evidence_rows.toml``). Where records answer it, the verdict follows from the numbers
by the rules in ``RULES``; nobody types one in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report import paper
from scout_rl.report.comparison import BY_MEAN, Runs, retention, window_of
from scout_rl.report.conditions import Condition
from scout_rl.report.metrics import Summary
from scout_rl.report.statistics import Interval, bootstrap, generator, paired
from scout_rl.settings import SETTINGS

TIE = 0.05
"""Differences up to this are ties; two blocks of the paper's own differ by 0.024."""
CLOSE = 0.1
"""How far below the paper's number SCOUT's own may end."""
SCHEDULES = ("T_anneal", "T")
RULES = f"""- **reproduced**: for SCOUT's own rows, at most {CLOSE} below the paper's number. For another rule, SCOUT is
  ahead, level or behind as in the paper (within {TIE} is level), and where it is ahead or behind, by at least half the
  paper's difference. For automatic ladders, at least 0.9 of the hand-built ladder's gain is kept.
- **weaker**: for SCOUT's own rows, at least half the paper's number. For another rule, the same sign and less than half
  the difference, or level in one and not in the other. For automatic ladders, at least half of the gain, or neither
  gain nor loss to keep.
- **reversed**: anything less; for another rule, the opposite sign; for automatic ladders also where the hand-built
  ladder loses to the target start.
- **not yet run**: no record, or no seed that both sides have.
- **no claim**: the paper says nothing about this condition; ours stands for itself."""


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
    """``ahead``, ``tie`` or ``behind``: SCOUT against this rule, where the paper shows it without numbers."""
    paper_difference: float | None = None
    says: str = ""


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
    verdict: str = "not yet run"
    note: str = ""


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
    told = _with(told, ours=ours, runs=mine.runs)
    if row.rule == "scout" and not row.compare:
        return _with(told, verdict=_own(ours.point, number))
    other = _other(row, blocks, block)
    both = None if other is None else paired(*((value, other) if row.compare else (other, value)))
    if both is None:
        return told
    verdict = _against(both.difference.point, told.paper_difference, row.expect)
    return _with(told, difference=both.difference, verdict=verdict)


def _paper_difference(row: Row, number: paper.Number | None) -> float | None:
    if row.paper_difference is not None or row.rule == "scout" or number is None:
        return row.paper_difference
    scout = paper.number(row.setting, "scout", row.metric, row.ladder, row.levels)
    return None if scout is None else scout.value - number.value


def _with(told: Answer, **changes: Any) -> Answer:
    return Answer(**{**told.__dict__, **changes})


def _retained(told: Answer, blocks: Sequence[Runs]) -> Answer:
    row = told.row
    found = retention(blocks, row.setting, row.ladder)
    block = protocol(row, blocks, row.levels)
    mine = with_own_constants(block, row.rule)
    if found is None or mine is None:
        return told
    if not found.defined:
        note = f"the hand-built ladder gains {found.gain:+.2f} AUC over the target start: nothing to keep"
        return _with(told, runs=mine.runs, verdict="reversed" if found.gain <= -TIE else "weaker", note=note)
    ratio = found.ratio.point
    verdict = "reproduced" if ratio >= 0.9 else "weaker" if ratio >= 0.5 else "reversed"
    return _with(told, ours=found.ratio, runs=mine.runs, verdict=verdict)


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
    usual = rules.make(rule).constants()
    for condition in block.conditions if block is not None else ():
        constants = condition.runs[0].about.config.get("constants", {})
        if condition.rule == rule and all(usual.get(k) == v for k, v in constants.items() if k not in SCHEDULES):
            return condition
    return None


def _other(row: Row, blocks: Sequence[Runs], block: Runs) -> dict[int, float] | None:
    if row.compare:
        block_of = protocol(row, blocks, int(row.compare.removeprefix("levels ")))
        condition = with_own_constants(block_of, row.rule)
        return None if block_of is None or condition is None else _values(row, block_of, condition)
    condition = with_own_constants(block, "scout")
    return None if condition is None else _values(row, block, condition)


def _values(row: Row, block: Runs, condition: Condition[Summary]) -> dict[int, float]:
    """The row's metric by seed, areas over the block's common window."""
    window = window_of(block)

    def one(run: Summary) -> float:
        if row.metric.startswith("final:"):
            return float(run.groups[row.metric.removeprefix("final:")][-1])
        areas = {"auc": run.auc, "worst_auc": run.worst_auc}
        if row.metric in areas:
            return areas[row.metric](window)
        return {"final": run.final, "worst_final": run.worst_final}[row.metric]

    return {run.about.seed: one(run) for run in condition.runs}


def _own(ours: float, number: paper.Number | None) -> str:
    if number is None:
        return "no claim"
    if ours >= number.value - CLOSE:
        return "reproduced"
    return "weaker" if ours >= number.value / 2 else "reversed"


def _against(ours: float, theirs: float | None, expect: str) -> str:
    wanted = _side(theirs) if theirs is not None else {"ahead": 1, "tie": 0, "behind": -1}.get(expect)
    if wanted is None:
        return "no claim"
    got = _side(ours)
    if got == -wanted and got:
        return "reversed"
    if got != wanted:
        return "weaker"
    enough = theirs is None or not got or abs(ours) >= abs(theirs) / 2
    return "reproduced" if enough else "weaker"


def _side(difference: float) -> int:
    return 0 if abs(difference) <= TIE else 1 if difference > 0 else -1
