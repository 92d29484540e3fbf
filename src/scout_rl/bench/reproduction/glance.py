"""All settings in one table, for the page of results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scout_rl.report.measure.choice import choose, fitting
from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.tables import MISSING, Table, shown

RULES = ("scout", "anneal", "mixture", "random", "target")
MARK = "at a glance"
"""Name of the mark in docs/results.md."""


def glance_table(settings: Sequence[str], blocks: Sequence[Block]) -> Table:
    """Final success of the worst group and windows to solve, for the rules that most settings have."""
    rows = []
    for setting in settings:
        runs_by_rule = [_runs(setting, rule, blocks) for rule in RULES]
        if any(runs_by_rule):
            rows.append([f"`{setting}`", *map(_cell, runs_by_rule)])
    return Table("At a glance", ["setting", *(f"`{rule}`" for rule in RULES)], rows)


def _runs(setting: str, rule: str, blocks: Sequence[Block]) -> Sequence[Summary]:
    """The runs behind the verdict on this rule."""
    choice = choose(fitting(blocks, setting, "manual", 5, ""))
    condition = None if choice is None else choice.block.of(rule)
    return condition.runs if condition is not None else ()


def _cell(runs: Sequence[Summary]) -> str:
    """``0.96 (800, 5 of 6)``: mean final success; median windows to solve, and how many seeds solved it."""
    if not runs:
        return MISSING
    when = [run.solved_window for run in runs if run.solved_window is not None]
    median = f"{np.median(when):,.0f}" if when else "never"
    count = f", {len(when)} of {len(runs)}" if len(runs) > 1 else ""
    return f"{shown(float(np.mean([run.worst_final for run in runs])))} ({median}{count})"
