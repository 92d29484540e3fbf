"""All settings in one table, for the README and the head of the reproduction page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scout_rl.bench.reproduction.verdicts import Row, protocol
from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.tables import MISSING, Table, shown

RULES = ("scout", "anneal", "mixture", "random", "target")
MARK = "at a glance"
"""Where the README has it."""


def glance_table(settings: Sequence[str], blocks: Sequence[Block]) -> Table:
    """Final success of the worst group, and windows to solve, of the rules that most settings have."""
    rows = []
    for setting in settings:
        found = [_runs(Row(setting, rule, "worst_final"), blocks) for rule in RULES]
        if any(found):
            rows.append([f"`{setting}`", *map(_cell, found)])
    return Table("At a glance", ["setting", *(f"`{rule}`" for rule in RULES)], rows)


def _runs(row: Row, blocks: Sequence[Block]) -> Sequence[Summary]:
    """Those that the verdict on this row would be about."""
    choice = protocol(row, blocks)
    condition = None if choice is None else choice.block.of(row.rule)
    return condition.runs if condition is not None else ()


def _cell(runs: Sequence[Summary]) -> str:
    """``0.96 (800, 5 of 6)``: mean over seeds; the median of those that solved it, and how many these are."""
    if not runs:
        return MISSING
    when = [run.solved_window for run in runs if run.solved_window is not None]
    median = f"{np.median(when):,.0f}" if when else "never"
    count = f", {len(when)} of {len(runs)}" if len(runs) > 1 else ""
    return f"{shown(float(np.mean([run.worst_final for run in runs])))} ({median}{count})"
