"""A picture of Fetch starts: rendered offscreen, or sketched from the side where there is no offscreen GL."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from scout_rl.bench.families.cell_grid import draw_cells, free_camera, renders
from scout_rl.bench.families.fetch.contexts import TABLE_Z
from scout_rl.bench.families.fetch.simulator import home
from scout_rl.bench.families.mujoco_batch import Array, restore_data

WIDTH, HEIGHT = 200, 200
CAMERA = {"distance": 1.4, "azimuth": 115.0, "elevation": -18.0}
LOOK_AT = (1.3, 0.75, 0.68)


def draw(
    path: str | Path,
    ladder: Mapping[str, Array],
    contexts: Sequence[int] = (0, 1, 2),
    say: Callable[[str], None] = print,
) -> bool:
    """Draw those contexts' cells; returns whether they were rendered, and says why where they were not."""
    model, data = copy.copy(home().model), mujoco.MjData(home().model)
    model.geom_rgba[model.body_mocapid[model.geom_bodyid] >= 0, 3] = 0  # lines that only say where the mocap target is
    model.site("target0").rgba[:], model.site("target0").size[0] = (1, 0, 0, 1), 0.025
    rendered = renders(say)
    renderer = mujoco.Renderer(model, HEIGHT, WIDTH) if rendered else None
    camera = free_camera(LOOK_AT, **CAMERA)

    def cell(axis: Any, context: int, level: int) -> None:
        state = {name: array[context, level] for name, array in ladder.items()}
        restore_data(model, data, state)
        if renderer is None:
            _sketch(axis, data, model, state["goal"])
            return
        target = model.site("target0").id
        parent = data.xpos[model.site_bodyid[target]]
        model.site_pos[target] = state["goal"] - parent
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera)
        axis.imshow(renderer.render())

    draw_cells(path, contexts, next(iter(ladder.values())).shape[1], cell)
    if renderer is not None:
        renderer.close()
    return rendered


def _sketch(axis: Any, data: Any, model: Any, goal: Array) -> None:
    """y against z: the table, the gripper, the object and the goal."""
    grip, thing = (data.site_xpos[model.site(name).id] for name in ("robot0:grip", "object0"))
    axis.axhline(TABLE_Z - 0.025, color="grey", linewidth=1)
    axis.plot(*np.stack([grip, grip + np.array([0, 0, 0.12])])[:, 1:].T, color="black", linewidth=2)
    axis.plot(thing[1], thing[2], "s", color="tab:blue", markersize=5)
    axis.plot(goal[1], goal[2], "o", color="tab:red", markersize=4)
    axis.set_xlim(0.5, 1.0)
    axis.set_ylim(0.38, 0.98)
