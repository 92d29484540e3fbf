"""The figures of docs/results.md: small, and one look per rule on every screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.metrics import worst_curve
from scout_rl.report.measure.statistics import mean_interval
from scout_rl.report.show import figures

SHOWN = ("ability", "scout", "mixture", "anneal", "random", "rfcl", "group-frontier", "target")
LOOKS = {rule: figures.look(i) for i, rule in enumerate(SHOWN)}
LOOKS |= {"target": LOOKS["target"]._replace(colour=figures.INK), "random": LOOKS["random"]._replace(colour="#7f7f7f")}
LOOKS |= {"group-frontier": LOOKS["group-frontier"]._replace(colour="#56b4e9")}
"""No two rules share a colour."""
POINTS = 50
"""Evaluations of a curve that are drawn at most."""
FURTHEST = 8.0
"""The largest multiple of a profile."""


def curves(block: Block, enough: int) -> figures.Figure:
    """Success of the worst group by windows: mean and interval from ``enough`` seeds on, else every seed."""
    figure, axes = figures.new_axes()
    for rule in reversed(SHOWN):  # the first on top
        condition = next((c for c in block.conditions if c.rule == rule), None)
        if condition is None:
            continue
        at = condition.runs[0].at
        rows = np.array([np.interp(at, run.at, worst_curve(run.groups)) for run in condition.runs])
        drawn = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS)).round().astype(int))
        x, rows = at[drawn], rows[:, drawn]
        look, several = LOOKS[rule], len(rows) >= enough
        line = {"color": look.colour, "linestyle": look.dash, "linewidth": (1.6 if several else 0.9) + 0.6 * (rule == "ability")}
        if several:
            middle, low, high = np.array([mean_interval(values) for values in rows.T]).T
            axes.fill_between(x, np.clip(low, 0, 1), np.clip(high, 0, 1), color=look.colour, alpha=0.12, linewidth=0)
            rows = middle[None]
        for row in rows:
            axes.plot(x, row, **line)
        axes.plot([], [], label=f"{rule} ({len(condition.runs)})", **line)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(left=0)
    figures.label_axes(axes, "window", "success of the worst group")
    _legend(figure, axes)
    return figures.Figure(block.label, "", figure)


def profile(multiples: Mapping[str, tuple[int, Sequence[float]]]) -> figures.Figure:
    """Share of runs that are solved within a multiple of the fastest rule's windows."""
    figure, axes = figures.new_axes()
    most = max(n for n, _ in multiples.values())
    for rule in (rule for rule in reversed(SHOWN) if rule in multiples):
        n, values = multiples[rule]
        ends = sorted(value for value in values if value <= FURTHEST)
        share = np.arange(1, len(ends) + 1) / len(values)
        label = rule if n == most else f"{rule} ({n} of {most} settings)"
        x, y = np.array([*ends, FURTHEST]), np.array([*share, share[-1] if ends else 0.0])
        look = LOOKS[rule]
        axes.step(x, y, where="post", color=look.colour, linestyle=look.dash, label=label, linewidth=1.6 + 0.6 * (rule == "ability"))
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.5, FURTHEST)
    axes.set_xticks([0.5, 1, 2, 4, FURTHEST], ["0.5", "1", "2", "4", f"{FURTHEST:g}"])
    axes.set_ylim(-0.03, 1.03)
    figures.label_axes(axes, "times the windows of the setting's fastest rule", "share of runs solved")
    _legend(figure, axes)
    return figures.Figure("profile", "", figure)


def save(figure: figures.Figure, docs: Path, name: str) -> str:
    """Write it on white, with two decimals; returns the link."""
    link = f"images/{name}.svg"
    (docs / "images").mkdir(parents=True, exist_ok=True)
    (docs / link).write_text(re.sub(r"(\d\.\d\d)\d+", r"\1", figure.white_svg), "utf-8")
    return link


def _legend(figure: object, axes: object) -> None:
    figures.legend_above(figure, axes)
