"""A picture of a ladder: one row per context, one column per level. Needs the ``plot`` extra."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env
from scout_rl.files.archive import Array
from scout_rl.ladders.ladder import Ladder

MOST_ROWS = 8
INCHES, DPI = 2.0, 120
"""The longer side of a cell."""
NO_GL = "MuJoCo finds no offscreen GL here (try MUJOCO_GL=osmesa or egl)"


def draw_grid(
    path: str | os.PathLike[str],
    show_row: Callable[[int], Callable[[Any, int], None]],
    rows: Sequence[str],
    captions: Sequence[Sequence[str]],
    title: str = "",
) -> None:
    """Fill every cell with ``show_row(row)(axis, level)`` and write a PNG of few colours.

    ``rows`` names the rows. ``captions`` [rows][levels] are drawn below the cells.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    n_levels = len(captions[0])
    figure = Figure(
        figsize=(INCHES * n_levels + 0.4, (INCHES + 0.22) * len(rows) + 0.55), layout="constrained", dpi=DPI
    )
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    axes = figure.subplots(len(rows), n_levels, squeeze=False)
    names = {0: "level 0 (target start)", n_levels - 1: f"level {n_levels - 1} (easiest)"}
    for level, axis in enumerate(axes[0]):
        axis.set_title(names.get(level, f"level {level}"), fontsize=9)
    for row, name in enumerate(rows):
        show = show_row(row)
        for level, axis in enumerate(axes[row]):
            show(axis, level)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_xlabel(captions[row][level], fontsize=8, labelpad=2)
        axes[row][0].set_ylabel(name, fontsize=8)
    canvas.draw()
    drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = drawn.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)  # rare colours count here
    few.save(path, optimize=True)


def draw_rungs(
    ladder: Ladder,
    env: Env,
    path: str | os.PathLike[str],
    codec: Codec | None = None,
    *,
    contexts: Sequence[int] | None = None,
) -> int:
    """Restore the first state of each cell, render it and write a PNG; returns how many were rendered.

    ``env`` must be made with ``render_mode="rgb_array"``. A cell that cannot be rendered (no offscreen GL)
    says why. For MuJoCo it also shows a sketch: geoms as dots, sites as crosses.
    """
    env.reset()
    codec = codec if codec is not None else codec_for(env)
    shown = list(range(min(ladder.n_contexts, MOST_ROWS))) if contexts is None else list(contexts)
    rendered = 0

    def show(axis: Any, context: int, level: int) -> None:
        nonlocal rendered
        codec.set_state(env, ladder.states(context, level)[0])
        picture = _picture(env)
        if isinstance(picture, str):
            _sketch(axis, env, picture)
        else:
            rendered += 1
            axis.imshow(picture)

    draw_grid(
        path,
        lambda row: lambda axis, level: show(axis, shown[row], level),
        [f"context {context}" for context in shown],
        [[""] * ladder.n_levels] * len(shown),
    )
    return rendered


def _picture(env: Env) -> Array | str:
    if env.render_mode != "rgb_array":
        return "made without render_mode='rgb_array'"
    if _simulations(env) and not mujoco_renders():
        return NO_GL
    picture: Any = env.render()
    return np.asarray(picture) if picture is not None else "rendered nothing"


@cache
def mujoco_renders() -> bool:
    """Whether MuJoCo can render here. Tried in a child process: a second failure would end this one."""
    trial = (
        "import mujoco\n"
        "from gymnasium.envs.mujoco.mujoco_rendering import OffScreenViewer\n"
        "xml = '<mujoco><worldbody><geom size=\".1\"/></worldbody></mujoco>'\n"
        "model = mujoco.MjModel.from_xml_string(xml)\n"
        "data = mujoco.MjData(model)\n"
        "mujoco.mj_forward(model, data)\n"
        "assert OffScreenViewer(model, data, 16, 16).render('rgb_array').shape == (16, 16, 3)\n"
    )
    finished = subprocess.run([sys.executable, "-c", trial], capture_output=True, check=False)
    return finished.returncode == 0


def _simulations(env: Env) -> list[tuple[Any, Any]]:
    if "mujoco" not in sys.modules:
        return []
    from scout_rl.codecs.mujoco import simulations

    return simulations(env.unwrapped)


def _sketch(axis: Any, env: Env, reason: str) -> None:
    """Draw the reason, and the centres of the geoms without large ones."""
    axis.text(0.5, 0.02, reason, ha="center", va="bottom", fontsize=5, transform=axis.transAxes)
    for model, data in _simulations(env):
        small = model.geom_rbound < 0.5 * model.stat.extent
        small &= (model.geom_rbound > 0) & (model.geom_rgba[:, 3] > 0)
        x, y, z = data.geom_xpos[small].T
        colours = np.clip(model.geom_rgba[small], 0, 1)
        axis.scatter(x + 0.4 * y, z + 0.25 * y, s=12, c=colours, edgecolors="grey", linewidths=0.3)
        if model.nsite:
            x, y, z = data.site_xpos.T
            axis.scatter(x + 0.4 * y, z + 0.25 * y, s=10, marker="x", color="crimson", linewidths=0.8)
