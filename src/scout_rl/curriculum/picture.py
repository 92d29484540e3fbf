"""A picture of a run's records: the frontier heat map, where rollouts started, their success, and the moves.

It works on the records of any loop (``Curriculum(..., log_dir=...)``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.records.level_colours import level_colours, level_names
from scout_rl.records.tables import Records, read_records
from scout_rl.rules.cells import Event
from scout_rl.rules.rule import require

COLUMNS = 400
"""Most columns of the heat map; in longer runs a column stands for several windows."""
GROUPS = 60
"""About how many groups of windows averages and counts use."""
MOVES = {"advance": ("^", "#000000"), "retreat": ("v", "#d55e00"), "antistall": ("*", "#cc79a7")}
"""Marker and colour of a move (Okabe-Ito colours)."""
MOST_MARKED = 300
"""More moves than this are not marked in the heat map, only counted below it."""


def picture(log_dir: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Draw the records of ``log_dir`` into ``out`` (PNG, PDF or SVG; default ``log_dir/frontier.png``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    records = read_records(log_dir)
    require(len(records.windows) > 0, f"{log_dir} holds no closed window yet: there is nothing to draw")
    out = Path(log_dir) / "frontier.png" if out is None else Path(out)
    figure = Figure(figsize=(10, 9.2), layout="constrained")
    FigureCanvasAgg(figure)
    heights = [4, 1.2, 1.6] if records.frontier is None else [4, 1.2, 1.6, 1]
    heat, starts, success, *moves = figure.subplots(len(heights), 1, height_ratios=heights, sharex=True)
    _draw_frontiers(figure, heat, records)
    _draw_starts(starts, records)
    _draw_success(success, records)
    if moves:
        _draw_moves(moves[0], records)
    (moves or [success])[0].set_xlabel("window")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)
    return out


def heat_map(records: Records) -> tuple[NDArray[np.float64], int]:
    """Return levels ``[columns, contexts]`` and the number of windows per column.

    A level is the frontier after the column's last window or, for rules without a frontier, the mean trained level
    (NaN: not trained).
    """
    n = len(records.windows)
    if records.frontier is not None:
        width = -(-n // COLUMNS)
        last = np.minimum(np.arange(width - 1, n + width - 1, width), n - 1)
        return records.frontier[last].astype(np.float64), width
    width = max(1, n // GROUPS)
    total = np.zeros((-(-n // width), int(records.config["n_contexts"])))
    count = np.zeros_like(total)
    for row, window in enumerate(records.windows):
        np.add.at(total[row // width], window["context"], window["level"])
        np.add.at(count[row // width], window["context"], 1)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0), width


def context_order(levels: NDArray[np.float64], events: list[Event]) -> NDArray[np.int64]:
    """Contexts, the furthest first: by last level, then mean level, then number of moves."""
    known = ~np.isnan(levels)
    mean = np.where(known, levels, 0).sum(0) / np.maximum(known.sum(0), 1)
    last_row = np.where(known.any(0), known.shape[0] - 1 - known[::-1].argmax(0), 0)
    last = np.nan_to_num(levels[last_row, np.arange(levels.shape[1])])
    moves = np.bincount([event.context for event in events], minlength=levels.shape[1])
    return np.lexsort((np.arange(levels.shape[1]), moves, mean, last))


def success_by_window(records: Records, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean success of all outcomes and of those at level 0, per group of ``width`` windows (NaN: no outcome)."""
    groups = -(-len(records.windows) // width)
    sums = np.zeros((2, groups))
    counts = np.zeros((2, groups))
    for row, window in enumerate(records.windows):
        success, target = np.asarray(window["success"], float), np.asarray(window["level"]) == 0
        for kind, mask in enumerate((np.ones_like(target), target)):
            sums[kind, row // width] += success[mask].sum()
            counts[kind, row // width] += mask.sum()
    overall, at_target = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return overall, at_target


def level_shares(records: Records, width: int) -> NDArray[np.float64]:
    """Return ``[groups, levels]``: share of the rollouts of ``width`` windows that started from each level."""
    count = np.zeros((-(-len(records.windows) // width), int(records.config["n_levels"])))
    for row, window in enumerate(records.windows):
        np.add.at(count[row // width], window["level"], 1)
    return np.asarray(count / np.maximum(1, count.sum(axis=1, keepdims=True)))


def draw_levels(axes: Any, levels: NDArray[Any], n_levels: int, windows: tuple[float, float]) -> Any:
    """Draw ``levels`` [columns, contexts] (NaN: white) over these windows, one row per context; returns the image."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    return axes.imshow(
        np.ma.masked_invalid(levels.T),
        aspect="auto",
        interpolation="nearest",
        cmap=ListedColormap(level_colours(n_levels)).with_extremes(bad="white"),
        norm=BoundaryNorm(np.arange(n_levels + 1) - 0.5, n_levels),
        extent=(*windows, levels.shape[1] - 0.5, -0.5),
    )


def level_bar(figure: Any, image: Any, n_levels: int, **place: Any) -> Any:
    """The legend of `draw_levels`; returns matplotlib's colour bar."""
    bar = figure.colorbar(image, ticks=range(n_levels), **place)
    bar.ax.tick_params(which="minor", length=0)
    bar.ax.set_yticklabels(level_names(n_levels))
    return bar


def _draw_frontiers(figure: Any, axes: Any, records: Records) -> None:
    levels, width = heat_map(records)
    order = context_order(levels, records.events)
    n_levels, first = int(records.config["n_levels"]), int(records.windows[0]["window"])
    image = draw_levels(axes, levels[:, order], n_levels, (first - 0.5, first + len(levels) * width - 0.5))
    axes.set_xlim(first - 0.5, first + len(records.windows) - 0.5)
    bar = level_bar(figure, image, n_levels, cax=axes.inset_axes((1.01, 0, 0.02, 1)))
    bar.set_label("level of the frontier" if records.frontier is not None else "mean level trained (white: none)")
    if len(records.events) <= MOST_MARKED:
        _mark_moves(axes, records.events, order)
    if len(order) <= 40:  # room to name every context
        axes.set_yticks(range(len(order)), [str(context) for context in order], fontsize=7)
        axes.set_ylabel("context (furthest on top)")
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(order)} contexts (furthest on top)")
    title = f"{records.config['rule']['key']}: {records.config['n_contexts']} contexts, {len(records.windows)} windows"
    if records.frontier is not None:
        title += f"; frontier at the target: {np.mean(records.frontier[-1] == 0):.0%} of contexts"
    axes.set_title(title, loc="left", fontsize=11)


def _mark_moves(axes: Any, events: list[Event], order: NDArray[np.int64]) -> None:
    place = np.argsort(order)
    size = float(np.clip(600 / len(order), 6, 40))
    for kind, (marker, colour) in MOVES.items():
        moved = [event for event in events if event.kind == kind]
        windows, rows = [event.window for event in moved], [place[event.context] for event in moved]
        axes.scatter(windows, rows, marker=marker, s=size, c=colour, edgecolors="white", linewidths=0.5)


def _draw_moves(axes: Any, records: Records) -> None:
    first, width = int(records.windows[0]["window"]), max(1, len(records.windows) // GROUPS)
    edges = first - 0.5 + np.arange(-(-len(records.windows) // width) + 1) * width
    below = np.zeros(len(edges) - 1)
    for kind, (marker, colour) in MOVES.items():
        windows = [event.window for event in records.events if event.kind == kind]
        if kind == "antistall" and not windows:
            continue  # most rules do not probe
        count, _ = np.histogram(windows, edges)
        axes.bar(edges[:-1], count, width, below, align="edge", color=colour, edgecolor="white", linewidth=0.3)
        axes.scatter([], [], marker=marker, c=colour, label=f"{kind} ({len(windows)})")
        below += count
    axes.set_ylabel("moves" if width == 1 else f"moves in\n{width} windows")
    axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.05), frameon=False, handletextpad=0.2, borderaxespad=0)


def _draw_starts(axes: Any, records: Records) -> None:
    """Bars in the colours of the heat map, the target start at the bottom."""
    first, width = int(records.windows[0]["window"]), max(1, len(records.windows) // GROUPS)
    shares = level_shares(records, width)
    left = first - 0.5 + np.arange(len(shares)) * width
    below = np.cumsum(shares, axis=1) - shares
    for level, colour in enumerate(level_colours(shares.shape[1])):
        axes.bar(left, shares[:, level], width, below[:, level], align="edge", color=colour, linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_ylabel("rollouts\nby level")


def _draw_success(axes: Any, records: Records) -> None:
    width = max(1, len(records.windows) // GROUPS)
    overall, at_target = success_by_window(records, width)
    middle = int(records.windows[0]["window"]) + np.arange(len(overall)) * width + (width - 1) / 2
    target = level_colours(int(records.config["n_levels"]))[0]
    axes.plot(middle, overall, color="#56b4e9", label="from all levels")
    axes.plot(middle, at_target, color=target, marker="o", markersize=3, label="from the target start")
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("training success" if width == 1 else f"training success\n(mean of {width} windows)")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.05), frameon=False, borderaxespad=0)
