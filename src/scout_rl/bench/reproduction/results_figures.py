"""The figures of docs/results.md: small, and one look per rule on every screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.metrics import worst_curve
from scout_rl.report.measure.statistics import mean_interval
from scout_rl.report.show import figures

SHOWN = ("ability", "scout", "mixture", "anneal", "group-frontier", "rfcl", "random", "target")
LOOKS = {rule: figures.look(i) for i, rule in enumerate(SHOWN)}
LOOKS["target"] = LOOKS["target"]._replace(colour=figures.INK)
"""One colour each; there are seven beside the ink."""
POINTS = 50
"""Evaluations of a curve that are drawn at most."""
NEAREST, FURTHEST = 0.5, 8.0
"""The multiples of a profile."""


def curves(block: Block, enough: int) -> figures.Figure:
    """Success of the worst group by windows: mean and interval from ``enough`` seeds on, else every seed."""
    figure, axes = figures.new_axes()
    for place, rule in enumerate(SHOWN):
        condition = next((c for c in block.conditions if c.rule == rule), None)
        if condition is None:
            continue
        at = condition.runs[0].at
        rows = np.array([np.interp(at, run.at, worst_curve(run.groups)) for run in condition.runs])
        drawn = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS)).round().astype(int))
        x, rows = at[drawn], rows[:, drawn]
        line = _line(rule, 1.6 if len(rows) >= enough else 1.0) | {"zorder": 3 - place / len(SHOWN)}
        if len(rows) >= enough:
            mean, low, high = np.array([mean_interval(values) for values in rows.T]).T
            axes.fill_between(x, np.clip(low, 0, 1), np.clip(high, 0, 1), color=line["color"], alpha=0.12, linewidth=0)
            rows = mean[None]
        axes.plot(x, rows.T, **line, label=[f"{rule} ({len(condition.runs)})", *["_"] * (len(rows) - 1)])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(left=0)
    figures.label_axes(axes, "window", "success of the worst group")
    figures.legend_above(figure, axes)
    return figures.Figure(block.label, "", figure)


def profile(multiples: Mapping[str, tuple[int, Sequence[float]]]) -> figures.Figure:
    """Share of runs that are solved within a multiple of the fastest rule's windows (`results.profile`)."""
    figure, axes = figures.new_axes()
    most = max(n for n, _ in multiples.values())
    for place, rule in enumerate(rule for rule in SHOWN if rule in multiples):
        n, values = multiples[rule]
        ends = sorted(value for value in values if value <= FURTHEST)
        share = np.arange(len(ends) + 1) / len(values)
        label = rule if n == most else f"{rule} ({n} of {most} settings)"
        x, y = [NEAREST, *ends, FURTHEST], [*share, share[-1]]
        axes.step(x, y, where="post", label=label, zorder=3 - place / len(SHOWN), **_line(rule, 1.6))
    axes.set_xscale("log", base=2)
    axes.set_xlim(NEAREST, FURTHEST)
    axes.set_xticks(ticks := [NEAREST, 1, 2, 4, FURTHEST], [f"{tick:g}" for tick in ticks])
    axes.set_ylim(-0.03, 1.03)
    figures.label_axes(axes, "times the windows of the setting's fastest rule", "share of runs solved")
    figures.legend_above(figure, axes)
    return figures.Figure("profile", "", figure)


def _line(rule: str, width: float) -> dict[str, Any]:
    look = LOOKS[rule]
    return {"color": look.colour, "linestyle": look.dash, "linewidth": width + 0.8 * (rule == SHOWN[0])}


def save(figure: figures.Figure, docs: Path, name: str) -> str:
    """Write it on white, with two decimals; returns the link."""
    return figures.save_svg(re.sub(r"(\d\.\d\d)\d+", r"\1", figure.white_svg), docs, name)
