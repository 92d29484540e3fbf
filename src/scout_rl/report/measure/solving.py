"""What it takes to solve a setting: windows, updates, environment steps, minutes (spec section 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import HELD, REACHED, Summary
from scout_rl.report.measure.tables import MISSING, Table, table_of

Number = Callable[[Summary], float | None]
COLUMNS: dict[str, tuple[Number, int]] = {
    "windows": (lambda run: run.solved_window, 0),
    "updates": (lambda run: run.solved_updates, 0),
    "million steps": (lambda run: None if run.solved_steps is None else run.solved_steps / 1e6, 2),
    "minutes": (lambda run: None if run.solved_seconds is None else run.solved_seconds / 60, 1),
}
"""Column -> its number, and how many digits it is printed with."""
NOTE = (
    f"Up to the first evaluation at which the worst group is at {REACHED} or above and at {HELD} or above at the next "
    "two. Median over the seeds that got there, [least, most] from two seeds on; the others are listed and in no "
    "median."
)
COSTS_NOTE = (
    " Updates: gradient steps, worked out from the learner's constants and the environment steps. Minutes: wall "
    "time of training, in proportion to windows for a compact record."
)


def solving_table(block: Block) -> Table:
    """One row per condition: how many seeds solved it, which did not, and what it took."""
    columns = list(COLUMNS) if block.has_costs else ["windows"]
    note = NOTE + COSTS_NOTE * block.has_costs
    return table_of(f"{block.label}: what it takes to solve", [_row(c, columns) for c in block.conditions], [note])


def _row(condition: Condition, columns: Sequence[str]) -> dict[str, str]:
    solved = [run for run in condition.runs if run.solved_window is not None]
    unsolved_seeds = ", ".join(str(run.about.seed) for run in condition.runs if run.solved_window is None)
    row = {"rule": condition.label, "n": str(len(condition.runs)), "got there": str(len(solved))}
    row["did not (seeds)"] = unsolved_seeds or "none"
    return row | {column: _spread(solved, *COLUMNS[column]) for column in columns}


def _spread(runs: Sequence[Summary], number: Number, digits: int) -> str:
    known = [value for value in map(number, runs) if value is not None]
    if not known:
        return MISSING
    middle = f"{np.median(known):,.{digits}f}"
    return middle if len(known) < 2 else f"{middle} [{min(known):,.{digits}f}, {max(known):,.{digits}f}]"
