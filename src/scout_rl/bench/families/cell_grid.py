"""A picture of chosen cells: a row a context, a column a level. Needs the ``plot`` extra."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mujoco

from scout_rl.ladders.picture import mujoco_renders

N_COLOURS = 224
"""Of the palette: pictures stay small enough for documentation."""


def renders(say: Callable[[str], None]) -> bool:
    """Whether MuJoCo can render offscreen here; ``say`` is told what happens where it cannot."""
    rendered = mujoco_renders()
    if not rendered:
        say("MuJoCo finds no offscreen GL here (try MUJOCO_GL=osmesa or egl): the cells are sketched from the side.")
    return rendered


def free_camera(look_at: tuple[float, float, float], *, distance: float, azimuth: float, elevation: float) -> Any:
    """A camera that looks at a point."""
    camera = mujoco.MjvCamera()
    camera.lookat[:] = look_at
    camera.distance, camera.azimuth, camera.elevation = distance, azimuth, elevation
    return camera


def draw_cells(
    path: str | Path,
    contexts: Sequence[int],
    n_levels: int,
    draw: Callable[[Any, int, int], None],
    *,
    aspect: float = 1.0,
) -> None:
    """Let ``draw(axis, context, level)`` fill every cell and write a PNG; ``aspect`` is a cell's height over width."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(1.7 * n_levels, 1.7 * aspect * len(contexts) + 0.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(contexts), n_levels, squeeze=False)
    for row, context in enumerate(contexts):
        for level in range(n_levels):
            axis = axes[row][level]
            draw(axis, context, level)
            axis.set_xticks([])
            axis.set_yticks([])
            if row == 0:
                axis.set_title(f"level {level}", fontsize=8)
            if level == 0:
                axis.set_ylabel(f"context {context}", fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    Image.open(content).convert("RGB").quantize(N_COLOURS).save(path, optimize=True)
