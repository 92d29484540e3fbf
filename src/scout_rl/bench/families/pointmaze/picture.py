"""A picture of a PointMaze start, from above: walls, the shortest way, the ball and the goal."""

from __future__ import annotations

from typing import Any

from scout_rl.bench.families.family import States
from scout_rl.bench.families.pointmaze.simulator import SUCCESS_DISTANCE
from scout_rl.bench.families.pointmaze.solver import simulator_of_states


def sketch(axis: Any, state: States, target: States) -> None:
    """Draw the way from the start, and in a lighter line the way from the target start."""
    from matplotlib.patches import Circle

    maze = simulator_of_states(state).maze
    right, top = maze.centre
    position, goal = state["qpos"], state["goal"]
    axis.imshow(maze.walls, cmap="Greys", vmin=0, vmax=2, extent=(-right, right, -top, top))
    axis.plot(*maze.way(target["qpos"], goal).T, color="tab:blue", linewidth=0.8, alpha=0.5)
    axis.plot(*maze.way(position, goal).T, color="tab:blue", linewidth=1.5)
    axis.add_patch(Circle(tuple(goal), SUCCESS_DISTANCE, color="tab:red", alpha=0.35, linewidth=0))
    axis.plot(*goal, "x", color="tab:red", markersize=4)
    axis.plot(*position, "o", color="tab:green", markersize=5)
