"""Meta-World v3: pick-place, push and shelf-place, stepped as one batch of MuJoCo environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.metaworld import contexts, grasp_checks, operator, solver
from scout_rl.bench.families.metaworld.simulator import Simulator
from scout_rl.bench.families.metaworld.stock import StockTask
from scout_rl.bench.families.solution_ladder import solution_ladder, time_rungs
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report


@dataclass(frozen=True)
class MetaWorld:
    """The family's five files behind the contract."""

    key: str = "metaworld"

    def sample_bank(self, setting: Setting) -> ContextBank:
        """Task vectors within the stock ranges."""
        return contexts.sample_bank(setting)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """Environments of any of the tasks; the states say which."""
        contexts.tasks_of(setting)
        return Simulator(solver.HORIZON)

    def target_starts(self, bank_contexts: Mapping[str, NDArray[Any]]) -> States:
        """The stock starts."""
        return contexts.target_starts(bank_contexts)

    def starts(self, bank_contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """Grasped, or lying part of the way."""
        return operator.starts(bank_contexts, n_levels)

    def solver_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """Fractions of the scripted solution's steps."""
        return solution_ladder(self.solutions(self.target_starts(bank_contexts)), self.rungs, n_levels)

    def trajectory(self, state: Mapping[str, NDArray[Any]]) -> Solution:
        """The scripted solution."""
        return solver.trajectory(state)

    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Solution]:
        """The scripted solutions of n states at once."""
        return [found.solution for found in solver.solved(states)]

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """Shares of the steps."""
        return time_rungs(n_steps, n_levels)

    def as_starts(self, states: Mapping[str, NDArray[Any]]) -> States:
        """With the step counters at 0: nothing else depends on how a state was reached."""
        return {**states, "step_count": np.zeros_like(states["step_count"])}

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, source: str = "manual") -> Report:
        """Offline validation; every scaffold of a hand-built ladder that lifts the object has to rest in the grasp."""
        return grasp_checks.check_ladder(solver.shared_simulator(), ladder, source)

    def stock_env(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> StockTask:
        """The unmodified environment, started in the context."""
        return StockTask(solver.HORIZON, context, pixels)


FAMILY = MetaWorld()
