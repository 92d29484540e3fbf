"""What the figures show, as plain arrays. `figures` draws them."""

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
    """Mean and standard deviation over seeds, by window."""

    label: str
    x: Floats
    mean: Floats
    deviation: Floats
    """0 for one seed."""


class Dots(NamedTuple):
    """One value per seed, and their median or mean."""

    label: str
    values: Floats
    middle: float


class Points(NamedTuple):
    """Two values per seed."""

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


def worst_group_dots(scores: list[Score], reduce: Callable[..., Any]) -> list[Dots]:
    """Worst-group AUC of every seed, and the median (or mean) over them."""
    return [Dots(s.condition.label, s.worst_auc, float(reduce(s.worst_auc))) for s in scores]


def final_by_group(block: Block) -> dict[str, list[Dots]]:
    """Final success of every seed and its mean: group -> one entry per condition."""
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


def aggregate_against_worst(scores: list[Score]) -> list[Points]:
    """AUC over all held-out contexts against worst-group AUC, one point per seed."""
    return [Points(s.condition.label, s.auc, s.worst_auc) for s in scores]


def reversals_against_worst(scores: list[Score]) -> list[Points]:
    """Reversals per context against worst-group AUC; only rules with a frontier."""
    points = []
    for s in scores:
        turns = [run.reversals for run in s.condition.runs]
        if all(t is not None for t in turns):
            points.append(Points(s.condition.label, np.array(turns, float), s.worst_auc))
    return points


def _band(label: str, x: Floats, rows: Sequence[NDArray[Any]]) -> Band:
    stacked = np.asarray(rows, float)
    deviation = stacked.std(axis=0, ddof=1) if len(stacked) > 1 else np.zeros(stacked.shape[1])
    return Band(label, x, stacked.mean(axis=0), deviation)
