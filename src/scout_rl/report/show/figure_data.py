"""What the figures show, as plain arrays: drawn by `figures`, checked by tests, no matplotlib here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.comparison import Score
from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import worst_curve

Floats = NDArray[np.float64]


class Band(NamedTuple):
    """A mean and a standard deviation over seeds, over an axis of windows."""

    label: str
    x: Floats
    mean: Floats
    deviation: Floats
    """0 for one seed."""


class Dots(NamedTuple):
    """A value a seed, and their middle."""

    label: str
    values: Floats
    middle: float


class Points(NamedTuple):
    """Two values a seed."""

    label: str
    x: Floats
    y: Floats


POINTS = 240
"""Frontier curves are drawn at this many windows at most."""


def learning_curves(block: Block, *, worst: bool = False) -> list[Band]:
    """Held-out success (of the worst group) by windows, on the evaluations that all seeds of a condition have."""
    return [_curve(c, worst) for c in block.conditions]


def _curve(condition: Condition, worst: bool) -> Band:
    at = condition.runs[0].at
    for run in condition.runs[1:]:
        at = np.intersect1d(at, run.at)
    rows = []
    for run in condition.runs:
        curve = worst_curve(run.groups) if worst else run.held_out
        rows.append(curve[np.isin(run.at, at)])
    return _band(condition.label, at.astype(float), rows)


def worst_group_dots(found: list[Score], reduce: Callable[..., Any]) -> list[Dots]:
    """Worst-group AUC of every seed, and the median (or mean) over them."""
    return [Dots(s.condition.label, s.worst_auc, float(reduce(s.worst_auc))) for s in found]


def final_by_group(block: Block) -> dict[str, list[Dots]]:
    """Final success of every seed and its mean: group -> one entry a condition."""
    names = list(block.conditions[0].runs[0].groups)
    return {name: [_final(c, name) for c in block.conditions] for name in names}


def _final(condition: Condition, name: str) -> Dots:
    values = np.array([run.groups[name][-1] for run in condition.runs])
    return Dots(condition.label, values, float(values.mean()))


def frontier_bands(condition: Condition, field: str) -> list[Band]:
    """``frontier_mean`` or ``dispersion`` of `Summary` by group of training contexts; empty without a frontier."""
    runs = [run for run in condition.runs if run.frontier_mean]
    if not runs:
        return []
    windows = min(run.about.windows for run in runs)
    shown = np.unique(np.linspace(0, windows - 1, min(windows, POINTS)).astype(int))
    names = list(getattr(runs[0], field))
    return [_band(name, shown + 1.0, [getattr(run, field)[name][shown] for run in runs]) for name in names]


def aggregate_against_worst(found: list[Score]) -> list[Points]:
    """AUC over all held-out contexts against worst-group AUC, a point a seed."""
    return [Points(s.condition.label, s.auc, s.worst_auc) for s in found]


def reversals_against_worst(found: list[Score]) -> list[Points]:
    """Reversals a context against worst-group AUC; rules with a frontier alone."""
    made = []
    for s in found:
        turns = [run.reversals for run in s.condition.runs]
        if all(t is not None for t in turns):
            made.append(Points(s.condition.label, np.array(turns, float), s.worst_auc))
    return made


def _band(label: str, x: Floats, rows: Sequence[NDArray[Any]]) -> Band:
    stacked = np.asarray(rows, float)
    deviation = stacked.std(axis=0, ddof=1) if len(stacked) > 1 else np.zeros(stacked.shape[1])
    return Band(label, x, stacked.mean(axis=0), deviation)
