"""A PointMaze context: a maze, a start and a goal, both drawn as the stock reset draws them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.families.group_sampling import fill_groups
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze.maze import Maze, way_length
from scout_rl.bench.families.pointmaze.simulator import SUCCESS_DISTANCE, TASKS, Simulator, simulator
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

NOISE = 0.25
"""Start and goal lie within this distance of a cell's centre along each axis."""


def sample_bank(setting: Setting) -> ContextBank:
    """Draw start-goal pairs until every group of both parts is full."""
    maze = simulator(setting.task).maze

    def draw(generator: np.random.Generator) -> States:
        pair = maze.free_cells[generator.integers(len(maze.free_cells), size=2)]
        start, goal = maze.cell_centre(pair) + generator.uniform(-NOISE, NOISE, (2, 2))
        maze_index = np.array(TASKS.index(setting.task), dtype=np.int64)
        return {"maze": maze_index, "start": start.round(6), "goal": goal.round(6)}

    def features(context: Mapping[str, Array]) -> dict[str, float]:
        if np.linalg.norm(context["start"] - context["goal"]) <= SUCCESS_DISTANCE:
            return {"geodesic": 0.0}
        return {"geodesic": way_length(maze.way(context["start"], context["goal"]))}

    return fill_groups(setting, draw, features)


def simulator_of(contexts: Mapping[str, Array]) -> Simulator:
    """The simulator of the maze that these contexts share."""
    mazes = np.unique(contexts["maze"])
    if len(mazes) != 1 or not 0 <= mazes[0] < len(TASKS):
        raise Refusal(f"contexts of one maze are needed, not of {mazes.tolist()}; there are {len(TASKS)} mazes.")
    return simulator(TASKS[int(mazes[0])])


def check(maze: Maze, contexts: Mapping[str, Array]) -> None:
    """Refuse a start or a goal in a wall or outside the maze."""
    for what in ("start", "goal"):
        free = maze.is_free(contexts[what])
        if not free.all():
            x = int(np.argmin(free))
            at = contexts[what][x].round(3).tolist()
            raise Refusal(f"context {x}: the {what} at {at} is in a wall or outside the maze.")


def target_starts(contexts: Mapping[str, Array]) -> States:
    """The level-0 states [contexts, ...]: the ball at rest at the start."""
    simulated = simulator_of(contexts)
    check(simulated.maze, contexts)
    return starts_at(simulated, contexts["start"], contexts["goal"])


def starts_at(simulated: Simulator, position: Array, goal: Array) -> States:
    """The ball at rest at ``position`` [n, 2]; all else as after a stock reset."""
    n, layout = len(position), simulated.pool.layout
    states: States = {name: np.zeros((n, *shape), dtype=dtype) for name, (_, shape, dtype) in layout.parts.items()}
    states |= {**layout.identity(n), "qpos": np.array(position, dtype=np.float64)}
    return simulated.as_starts({**states, "goal": np.array(goal, dtype=np.float64)})
