"""PointMaze: the stock mazes with chosen start-goal pairs, restorable and stepped as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze import contexts, operator, solver
from scout_rl.bench.families.pointmaze.simulator import SUCCESS_DISTANCE, Simulator, simulator
from scout_rl.bench.families.pointmaze.stock import StockMaze
from scout_rl.bench.families.start_checks import check_starts
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report


class PointMaze(Family):
    """The family's files behind the contract."""

    key = "pointmaze"
    sample_bank = staticmethod(contexts.sample_bank)
    target_starts = staticmethod(contexts.target_starts)
    starts = staticmethod(operator.starts)
    solutions = staticmethod(solver.solutions)
    stock_env = staticmethod(StockMaze)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """The stock environment as a batch."""
        return simulator(setting.task)

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """As after a stock reset, but moving."""
        return solver.simulator_of_states(states).as_starts(states)

    def check_ladder(self, bank_contexts: Mapping[str, Array], ladder: States, *, by_hand: bool) -> Report:
        """No ball may be in a wall."""
        maze = contexts.simulator_of(bank_contexts)
        return check_starts(
            maze,
            ladder,
            inside=lambda state: maze.maze.is_inside(maze.observe(state)["achieved_goal"]),
            as_starts=maze.as_starts,
        )

    def why_sketched(self) -> str:
        """Always: a sketch shows more than the stock picture."""
        return "The cells are drawn from above, with the way to the goal."

    def sketch(self, axis: Any, state: States, target: States) -> None:
        """From above: walls, ball, goal, the way from the start, and, lighter, the way from the target start."""
        from matplotlib.patches import Circle

        maze = solver.simulator_of_states(state).maze
        right, top = maze.centre
        position, goal = state["qpos"], state["goal"]
        axis.imshow(maze.walls, cmap="Greys", vmin=0, vmax=2, extent=(-right, right, -top, top))
        axis.plot(*maze.way(target["qpos"], goal).T, color="tab:blue", linewidth=0.8, alpha=0.5)
        axis.plot(*maze.way(position, goal).T, color="tab:blue", linewidth=1.5)
        axis.add_patch(Circle(tuple(goal), SUCCESS_DISTANCE, color="tab:red", alpha=0.35, linewidth=0))
        axis.plot(*goal, "x", color="tab:red", markersize=4)
        axis.plot(*position, "o", color="tab:green", markersize=5)


FAMILY = PointMaze()
