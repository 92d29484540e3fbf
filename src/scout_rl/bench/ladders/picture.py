"""A picture of a family's ladder: rows are contexts, columns are levels, each cell as the stock environment renders it.

Needs the ``plot`` extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States, StockFamily
from scout_rl.bench.settings.settings import Setting

PIXELS = 240
"""Rendered along the longer side of a cell."""
INCHES = 2.0
"""Drawn along the longer side of a cell."""
DPI = 120


def draw_cells(
    family: StockFamily,
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    ladder: States,
    rows: Sequence[str],
    captions: Sequence[Sequence[str]],
    title: str,
    path: Path,
) -> None:
    """Write a PNG of ``ladder`` [contexts, levels, ...]; ``rows`` name contexts, ``captions`` stand below cells."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    n_contexts, n_levels = next(iter(ladder.values())).shape[:2]
    figure = Figure(figsize=(INCHES * n_levels + 0.4, (INCHES + 0.22) * n_contexts + 0.55), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    axes = figure.subplots(n_contexts, n_levels, squeeze=False)
    for row in range(n_contexts):
        env = family.stock_env(setting, {name: array[row] for name, array in contexts.items()}, pixels=PIXELS)
        for level in range(n_levels):
            axis = axes[row][level]
            env.restore({name: array[row, level] for name, array in ladder.items()})
            axis.imshow(env.render())
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_xlabel(captions[row][level], fontsize=8, labelpad=2)
            if row == 0:
                axis.set_title(_column(level, n_levels), fontsize=9)
        axes[row][0].set_ylabel(rows[row], fontsize=8)
    figure.set_dpi(DPI)
    canvas.draw()
    drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = drawn.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)  # rare colours count here
    few.save(path, optimize=True)


def _column(level: int, n_levels: int) -> str:
    if level == 0:
        return "level 0 (target start)"
    return f"level {level} (easiest)" if level == n_levels - 1 else f"level {level}"
