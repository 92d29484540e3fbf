"""The figures, after the paper's. Dash, marker and hatch distinguish rules without colour."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.records.level_colours import level_colours, level_names
from scout_rl.report.measure.comparison import READ_OFF, Score, over_seeds
from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.stuck import has_model
from scout_rl.report.show import figure_data as data

INK = "#1b1f24"
"""Text and axes; the page replaces it by its own text colour."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f")
"""Okabe and Ito's, for colour-blind readers; the first is for the reference only."""
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d", "p")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")
SIZE = (4.6, 3.1)
LEGEND, HANDLE = 74, 10
"""Width of a figure, and of the line before each label, in characters of a legend."""
MOST_ROWS = 6
"""Rules whose levels are drawn: the first ones, so that a figure fits a screen."""
MOST_NAMED = 6
"""Levels that a legend names."""
MOST_BANDS = 5
"""With more rules than this only the first one has a band."""


class Look(NamedTuple):
    """How a rule is drawn, the same in every figure."""

    colour: str
    dash: Any
    marker: str


def look(i: int) -> Look:
    """The look of rule ``i``. The first has a colour and a dash of its own; no two rules share both."""
    others = len(COLOURS) - 1
    round_, place = divmod(i - 1, others)
    colour, dash = (0, 0) if i == 0 else (1 + place, 1 + (place + round_) % others)
    return Look(COLOURS[colour], DASHES[dash], MARKERS[i % len(MARKERS)])


@dataclass(frozen=True)
class Figure:
    """One drawn figure."""

    name: str
    caption: str
    drawn: Any
    """matplotlib's."""

    @cached_property
    def svg(self) -> str:
        """Transparent and reproducible: no date, ids from a fixed salt, text as text."""
        import matplotlib

        buffer = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none"}):
            note = {"Date": None, "Creator": None}
            self.drawn.savefig(buffer, format="svg", metadata=note, transparent=True)
        self.drawn.set_layout_engine("none")  # one layout is enough
        return buffer.getvalue()

    @property
    def white_svg(self) -> str:
        """The SVG on white, as a file of its own."""
        return re.sub(r"(<svg [^>]*>)", r'\1<rect width="100%" height="100%" fill="white"/>', self.svg, count=1)


def draw_all(block: Block, scores: list[Score]) -> list[Figure]:
    """Every figure that a block has the data for."""
    many = len(block.groups) > 1
    styles = {c.label: i for i, c in enumerate(block.conditions)}
    drawn = [curves(block, worst=worst) for worst in ([False, True] if many else [False])]
    drawn += [_dots(block, scores, styles), _final(block), _levels(block)]
    shown = next((c for c in (block.reference, *block.conditions) if c is not None and c.runs[0].frontier_mean), None)
    if shown is not None:
        drawn += [_bands(shown, "frontier_mean", "frontier", "mean frontier (0 = target)")]
        drawn += [_bands(shown, "dispersion", "dispersion", "IQR of frontiers in a group")]
    if many:
        points = [(s.condition.label, s.auc, s.worst_auc) for s in scores]
        drawn += [_points(points, styles, "masking", "AUC, all contexts", "What the average hides")]
    turning = [(s, [run.reversals for run in s.condition.runs if run.reversals is not None]) for s in scores]
    turns = [(s.condition.label, np.array(n), s.worst_auc) for s, n in turning if len(n) == len(s.worst_auc)]
    if len(turns) > 1:
        drawn += [_points(turns, styles, "reversals", "reversals per context", "Reversals of direction")]
    return drawn


def save(figure: Figure, folder: Path, dpi: int = 150) -> None:
    """Write NAME.svg and NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{figure.name}.svg").write_text(figure.white_svg, "utf-8")
    figure.drawn.savefig(folder / f"{figure.name}.png", dpi=dpi, facecolor="white")


def save_curves(block: Block, docs: Path, name: str) -> str:
    """Write the block's learning curves (of the worst group if there are groups) for a page; returns the link."""
    return save_svg(curves(block, worst=len(block.groups) > 1).white_svg, docs, name)


def save_svg(text: str, docs: Path, name: str) -> str:
    """Write a picture of a page; returns the link."""
    link = f"images/{name}.svg"
    (docs / "images").mkdir(parents=True, exist_ok=True)
    (docs / link).write_text(text, "utf-8")
    return link


def inline_svg(figure: Figure, prefix: str) -> str:
    """For an HTML page: ids with a ``prefix``, ink in the page's text colour."""
    text = figure.svg[figure.svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}", text)
    text = re.sub(r'<svg ([^>]*?)width="[^"]*pt"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)height="[^"]*pt"', r"<svg \1", text, count=1)
    text = re.sub(r"(-?\d+\.\d\d)\d+", r"\1", text)
    return text.replace(INK, "currentColor").replace(
        "<svg ", f'<svg role="img" aria-label="{escape(figure.caption)}" ', 1
    )


def new_axes(height: float = SIZE[1], rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, an array of them where there are several."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(SIZE[0], height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color=INK, alpha=0.13, linewidth=0.6)
        one.set_axisbelow(True)
        one.tick_params(colors=INK, labelsize=8)
        for spine in one.spines.values():
            spine.set_color(INK)
    return figure, axes


def label_axes(axes: Any, x: str, y: str) -> None:
    """Names of both axes."""
    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)


def legend_above(figure: Any, axes: Any, most: int = 4) -> None:
    """What the axes have labels for, in at most so many columns."""
    _, labels = axes.get_legend_handles_labels()
    figure.legend(
        loc="outside upper left",
        ncols=columns_for(labels, most),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        handlelength=2.6,
        borderpad=0,
    )


def columns_for(labels: Sequence[str], most: int) -> int:
    """How many columns of a legend fit into a figure, up to ``most``."""
    for n in range(min(most, len(labels)), 1, -1):
        widest = (max(map(len, column)) for column in np.array_split(np.array(labels), n))
        if sum(width + HANDLE for width in widest) <= LEGEND:
            return n
    return 1


def curves(block: Block, *, worst: bool) -> Figure:
    """Held-out success (of the worst group) by windows."""
    labels = [condition.label for condition in block.conditions]
    figure, axes = new_axes()
    for i, band in enumerate(data.learning_curves(block, worst=worst)):
        every = max(1, len(band.x) // 8)
        on_top = {"linewidth": 1.6 if i else 2.4, "zorder": 2 if i else 3}  # the reference on top of the others
        shaded = i == 0 or len(labels) <= MOST_BANDS
        _band(axes, band, look(i), (i % every, every), 1.0, shaded=shaded, **on_top)
    axes.set_ylim(-0.03, 1.03)
    label_axes(axes, "window", "success of the worst group" if worst else "held-out success")
    legend_above(figure, axes)
    which = "of the least successful group" if worst else "from the target start"
    bands = "" if len(labels) <= MOST_BANDS else f" (band: {labels[0]} alone)"
    caption = f"Held-out success {which}, mean ± s.d. over seeds{bands}."
    return Figure("worst-curves" if worst else "curves", caption, figure)


def _band(
    axes: Any, band: data.Band, style: Look, every: Any, most: float, *, shaded: bool = True, **line: Any
) -> None:
    """A mean with its deviation, which ends at 0 and at ``most``."""
    colour, dash, marker = style
    axes.plot(
        band.x,
        band.mean,
        color=colour,
        linestyle=dash,
        label=band.label,
        marker=marker,
        markevery=every,
        markersize=4,
        **line,
    )
    if band.deviation.any() and shaded:
        low, high = np.clip([band.mean - band.deviation, band.mean + band.deviation], 0, most)
        axes.fill_between(band.x, low, high, color=colour, alpha=0.14, linewidth=0)


def _dots(block: Block, scores: list[Score], styles: dict[str, int]) -> Figure:
    word, reduce = over_seeds(block)
    figure, axes = new_axes(height=max(1.5, 0.75 + 0.27 * len(scores)))
    for y, s in enumerate(scores):
        colour, _, marker = look(styles[s.condition.label])
        several = len(s.worst_auc) > 1
        spread = y + (np.linspace(-0.16, 0.16, len(s.worst_auc)) if several else np.zeros(1))
        axes.plot(s.worst_auc, spread, marker, color=colour, markersize=5, alpha=0.75)
        if several:
            axes.plot([float(reduce(s.worst_auc))] * 2, [y - 0.34, y + 0.34], color=INK, linewidth=2)
    axes.set_yticks(range(len(scores)), [s.condition.label for s in scores])
    axes.set_ylim(len(scores) - 0.45, -0.55)
    axes.set_xlim(-0.02, 1.02)
    name = "worst-group AUC" if len(block.groups) > 1 else "AUC"
    label_axes(axes, name, "")
    return Figure("worst-auc", f"{name[0].upper()}{name[1:]}: dots are seeds, ticks their {word}.", figure)


def _final(block: Block) -> Figure:
    groups = block.groups
    labels = [c.label for c in block.conditions]
    figure, axes = new_axes(height=max(1.7, 0.95 + (0.13 + 0.17 * len(groups)) * len(labels)))
    thick = 0.8 / len(groups)
    for g, name in enumerate(groups):
        y = np.arange(len(labels)) - 0.4 + (g + 0.5) * thick
        finals = [np.array([run.groups[name][-1] for run in c.runs]) for c in block.conditions]
        axes.barh(
            y,
            [values.mean() for values in finals],
            thick * 0.92,
            color=COLOURS[(0, 5, 2, 3, 4, 1)[g % 6]],
            hatch=HATCHES[g % len(HATCHES)],
            edgecolor=INK,
            linewidth=0.6,
            alpha=0.85,
            label=name,
        )
        for bar_y, values in zip(y, finals, strict=True):
            if len(values) > 1:
                axes.plot(values, np.full(len(values), bar_y), "|", color=INK, markersize=6)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    label_axes(axes, "final success", "")
    if len(groups) > 1:
        legend_above(figure, axes)
    return Figure("final", "Final held-out success by group: bars are means, ticks seeds.", figure)


def _levels(block: Block) -> Figure:
    """Rows are rules, columns groups of training contexts."""
    shown, groups, levels = block.conditions[:MOST_ROWS], data.training_groups(block), block.levels
    figure, axes = new_axes(max(1.9, 0.85 + 0.72 * len(shown)), len(shown), len(groups))
    panels = np.reshape(axes, (len(shown), len(groups)))
    named = set(np.linspace(0, levels - 1, min(levels, MOST_NAMED)).round().astype(int).tolist())
    labels = [name if i in named else "_" for i, name in enumerate(level_names(levels))]  # matplotlib lists no "_"
    for condition, row in zip(shown, panels, strict=True):
        row[0].set_title(condition.label, loc="left", color=INK, fontsize=8, pad=3)
        for panel, name in zip(row, groups, strict=True):
            x, share = data.level_shares(condition, name)
            names = labels if panel is panels[0, 0] else ()
            panel.stackplot(x, share.T, colors=level_colours(levels), linewidth=0, labels=names)
            panel.margins(x=0)
            panel.set_ylim(0, 1)
            panel.set_yticks([0, 1])
    for panel, name in zip(panels[-1], groups, strict=True):
        panel.set_xlabel("window" if len(groups) == 1 else f"window ({name})", color=INK, fontsize=9)
    figure.supylabel("share of rollouts", color=INK, fontsize=9)
    legend_above(figure, panels[0, 0], MOST_NAMED)
    whom = "each group" if len(groups) > 1 else "each rule"
    which = f" (the first {MOST_ROWS} rules)" if len(block.conditions) > MOST_ROWS else ""
    caption = f"Where {whom} trains{which}: rollouts by the level that they start from, mean over seeds."
    return Figure("levels", caption, figure)


def _bands(condition: Condition, field: str, name: str, y: str) -> Figure:
    figure, axes = new_axes()
    for i, band in enumerate(data.frontier_bands(condition, field)):
        style = Look(COLOURS[(0, 5, 2, 3)[i % 4]], DASHES[i % len(DASHES)], MARKERS[i % len(MARKERS)])
        _band(axes, band, style, max(1, len(band.x) // 7), np.inf, linewidth=1.6)
    axes.set_ylim(bottom=-0.05)
    label_axes(axes, "window", y)
    legend_above(figure, axes)
    what = {"frontier": "Mean frontier", "dispersion": "How far the frontiers of one group are apart"}[name]
    note = f" {READ_OFF.format(condition.label)}" if name == "frontier" and has_model(condition.rule) else ""
    return Figure(name, f"{what} under {condition.label}, mean ± s.d. over seeds.{note}", figure)


def _points(
    rows: list[tuple[str, data.Floats, data.Floats]], styles: dict[str, int], name: str, x: str, caption: str
) -> Figure:
    figure, axes = new_axes()
    for label, of_x, of_y in rows:
        colour, _, marker = look(styles[label])
        if len(of_x) > 1:
            axes.plot(of_x, of_y, marker, color=colour, markersize=4, alpha=0.45)
        axes.plot(
            np.median(of_x),
            np.median(of_y),
            marker,
            color=colour,
            markersize=9,
            markeredgecolor=INK,
            label=label,
            linestyle="",
        )
    axes.set_ylim(-0.03, 1.03)
    if name == "masking":
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, alpha=0.4)
    axes.set_xlim(left=-0.02 * max(1e-3, axes.get_xlim()[1]))
    label_axes(axes, x, "worst-group AUC")
    legend_above(figure, axes)
    return Figure(name, f"{caption}: one point per seed. Large markers: medians.", figure)
