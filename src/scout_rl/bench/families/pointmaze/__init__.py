"""PointMaze: the stock mazes with chosen start-goal pairs, restorable and stepped as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze import contexts, operator, solver
from scout_rl.bench.families.pointmaze.simulator import Simulator, simulator
from scout_rl.bench.families.pointmaze.stock import StockMaze
from scout_rl.bench.families.solution_ladder import solution_ladder, time_rungs
from scout_rl.bench.families.start_checks import check_starts
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.ladder import level_fractions
from scout_rl.ladders.validate import Report


@dataclass(frozen=True)
class PointMaze:
    """The family's five files behind the contract."""

    key: str = "pointmaze"

    def sample_bank(self, setting: Setting) -> ContextBank:
        """Stock start-goal pairs of the setting's maze."""
        return contexts.sample_bank(setting)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """The stock environment as a batch."""
        return simulator(setting.task)

    def target_starts(self, bank_contexts: Mapping[str, Array]) -> States:
        """The ball at rest at the context's start."""
        return contexts.target_starts(bank_contexts)

    def starts(self, bank_contexts: Mapping[str, Array], n_levels: int) -> States:
        """Fractions of the shortest way."""
        return operator.starts(bank_contexts, level_fractions(n_levels))

    def solver_ladder(self, bank_contexts: Mapping[str, Array], n_levels: int) -> States:
        """Shares of the driven solution's steps."""
        return solution_ladder(self.solutions(self.target_starts(bank_contexts)), self.rungs, n_levels)

    def trajectory(self, state: Mapping[str, Array]) -> Solution:
        """The shortest way, driven."""
        return solver.solve({name: np.asarray(array)[None] for name, array in state.items()})[0]

    def solutions(self, states: Mapping[str, Array]) -> list[Solution]:
        """The driven ways of n states at once."""
        return solver.solve(states)

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """Shares of the steps."""
        return time_rungs(n_steps, n_levels)

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """As after a stock reset, but moving."""
        return solver.simulator_of_states(states).as_starts(states)

    def check_ladder(self, bank_contexts: Mapping[str, Array], ladder: States, source: str = "manual") -> Report:
        """Offline validation."""
        simulated = contexts.simulator_of(bank_contexts)
        return check_starts(
            simulated,
            ladder,
            inside=lambda seen: simulated.maze.is_inside(seen["achieved_goal"]),
            is_success=lambda seen: simulated.judge(seen["achieved_goal"], seen["desired_goal"])[1],
            settle=np.zeros(2),
            as_starts=simulated.as_starts,
        )

    def stock_env(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> StockMaze:
        """The unmodified environment, started in the context."""
        return StockMaze(simulator(setting.task), context, pixels)


FAMILY = PointMaze()
