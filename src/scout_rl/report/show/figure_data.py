"""What the figures show, as plain arrays. `figures` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import column_width, worst_curve

Floats = NDArray[np.float64]


class Band(NamedTuple):
    """Mean and standard deviation over seeds, by window."""

    label: str
    x: Floats
    mean: Floats
    deviation: Floats
    """0 for one seed."""


class Shares(NamedTuple):
    """Where rollouts start, by window: mean over seeds."""

    x: Floats
    share: Floats
    """``[points, levels]``; 0 at all levels where nothing was drawn."""


POINTS = 240
"""Frontier curves are drawn at this many windows at most."""


def learning_curves(block: Block, *, worst: bool = False) -> list[Band]:
    """Held-out success (of the worst group) by windows, on the evaluations that all seeds of a condition have."""
    bands = []
    for condition in block.conditions:
        at = reduce(np.intersect1d, [run.at for run in condition.runs])
        curves = [(run.at, worst_curve(run.groups) if worst else run.held_out) for run in condition.runs]
        bands.append(_band(condition.label, at.astype(float), [curve[np.isin(own, at)] for own, curve in curves]))
    return bands


def frontier_bands(condition: Condition, field: str) -> list[Band]:
    """``frontier_mean`` or ``dispersion`` of `Summary` by group of training contexts; empty without a frontier."""
    runs = [run for run in condition.runs if run.frontier_mean]
    if not runs:
        return []
    windows = min(run.about.windows for run in runs)
    shown = np.unique(np.linspace(0, windows - 1, min(windows, POINTS)).astype(int))
    names = list(getattr(runs[0], field))
    return [_band(name, shown + 1.0, [getattr(run, field)[name][shown] for run in runs]) for name in names]


def training_groups(block: Block) -> list[str]:
    """The groups of training contexts; ``all`` where not all runs have the same."""
    names = [list(run.rollouts) for run in block.runs]
    return names[0] if all(own == names[0] for own in names) else ["all"]


def level_shares(condition: Condition, group: str) -> Shares:
    """Share of a group's rollouts (of `training_groups`) from each level, over the windows that all seeds have."""
    windows = min(run.about.windows for run in condition.runs)
    width = column_width(windows)
    start = np.arange(0, windows, width)
    shares = []
    for run in condition.runs:
        counts = run.rollouts[group] if group in run.rollouts else np.sum(list(run.rollouts.values()), axis=0)
        count = counts[start // column_width(run.about.windows)]
        shares.append(count / np.maximum(1, count.sum(axis=1, keepdims=True)))
    ends = np.concatenate(([0.0], start + width / 2, [windows]))
    mean = np.mean(shares, axis=0)
    return Shares(ends, np.concatenate((mean[:1], mean, mean[-1:])))


def _band(label: str, x: Floats, rows: Sequence[NDArray[Any]]) -> Band:
    stacked = np.asarray(rows, float)
    deviation = stacked.std(axis=0, ddof=1) if len(stacked) > 1 else np.zeros(stacked.shape[1])
    return Band(label, x, stacked.mean(axis=0), deviation)
