"""A picture of Meta-World starts: rendered offscreen, or sketched from the side where there is no offscreen GL."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mujoco

from scout_rl.bench.families.cell_grid import draw_cells, free_camera, renders
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.tasks import Array, stock

SIZE = 220
CAMERA = {"distance": 1.25, "azimuth": 160.0, "elevation": -20.0}
LOOK_AT = (0.0, 0.72, 0.14)


def draw(
    path: str | Path,
    ladder: Mapping[str, Array],
    contexts: Sequence[int] = (0, 1, 2),
    say: Callable[[str], None] = print,
) -> bool:
    """Draw those contexts' cells; returns whether they were rendered, and says why where they were not."""
    rendered = renders(say)

    @cache
    def scene(index: int) -> tuple[Any, Any, Any]:
        """Model and data to place things in, and a renderer, of one task."""
        model = copy.copy(stock(index).model)
        model.site("goal").rgba[:], model.site("goal").size[0] = (0, 0.8, 0, 1), 0.02
        return model, mujoco.MjData(model), mujoco.Renderer(model, SIZE, SIZE) if rendered else None

    camera = free_camera(LOOK_AT, **CAMERA)

    def cell(axis: Any, context: int, level: int) -> None:
        state = {name: array[context, level] for name, array in ladder.items()}
        model, data, renderer = scene(int(state["task"]))
        _place(model, data, state)
        if renderer is None:
            _sketch(axis, data, state)
        else:
            renderer.update_scene(data, camera)
            axis.imshow(renderer.render())

    draw_cells(path, contexts, next(iter(ladder.values())).shape[1], cell)
    if rendered:
        for index in {int(ladder["task"][context, 0]) for context in contexts}:
            scene(index)[2].close()
    return rendered


def _place(model: Any, data: Any, state: Mapping[str, Array]) -> None:
    """Put a model of one's own, its goal and its shelf included, into a state."""
    shelf = stock(int(state["task"])).shelf
    if shelf is None:
        model.site("goal").pos = state["goal"]
    else:
        model.body_pos[shelf] = state["shelf"]
    codec.layout().restore(model, data, codec.vector(state))


def _sketch(axis: Any, data: Any, state: Mapping[str, Array]) -> None:
    """y against z: the table, the hand, the object, the goal and the shelf's board."""
    facts = stock(int(state["task"]))
    hand, thing, goal = data.xpos[facts.hand], data.xpos[facts.object], state["goal"]
    axis.axhline(0, color="grey", linewidth=1)
    if facts.shelf is not None:
        axis.plot([goal[1] - 0.11, goal[1] + 0.08], [0.24, 0.24], color="peru", linewidth=2)
    axis.plot([hand[1], hand[1]], [hand[2], hand[2] + 0.1], color="black", linewidth=2)
    axis.plot(thing[1], thing[2], "s", color="tab:blue", markersize=5)
    axis.plot(goal[1], goal[2], "o", color="tab:green", markersize=4)
    axis.set_xlim(0.4, 1.0)
    axis.set_ylim(-0.05, 0.55)
