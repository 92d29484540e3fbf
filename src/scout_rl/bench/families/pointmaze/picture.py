"""A picture of PointMaze starts, from above: walls, the shortest way, the ball and the goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scout_rl.bench.families.cell_grid import draw_cells
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze.simulator import SUCCESS_DISTANCE
from scout_rl.bench.families.pointmaze.solver import simulator_of_states


def draw(path: str | Path, ladder: Mapping[str, Array], contexts: Sequence[int] = (0, 1, 2)) -> None:
    """Draw those contexts' cells."""
    from matplotlib.patches import Circle

    maze = simulator_of_states(ladder).maze
    right, top = maze.centre

    def cell(axis: Any, context: int, level: int) -> None:
        position, goal = ladder["qpos"][context, level], ladder["goal"][context, level]
        axis.imshow(maze.walls, cmap="Greys", vmin=0, vmax=2, extent=(-right, right, -top, top))
        axis.plot(*maze.way(ladder["qpos"][context, 0], goal).T, color="tab:blue", linewidth=0.8, alpha=0.5)
        axis.plot(*maze.way(position, goal).T, color="tab:blue", linewidth=1.5)
        axis.add_patch(Circle(tuple(goal), SUCCESS_DISTANCE, color="tab:red", alpha=0.35, linewidth=0))
        axis.plot(*goal, "x", color="tab:red", markersize=4)
        axis.plot(*position, "o", color="tab:green", markersize=5)

    draw_cells(path, contexts, next(iter(ladder.values())).shape[1], cell, aspect=top / right)
