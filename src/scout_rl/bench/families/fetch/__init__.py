"""Fetch: the stock pick-and-place with chosen object-goal pairs, restorable and stepped in threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.fetch import contexts, operator, solver
from scout_rl.bench.families.fetch.simulator import Simulator
from scout_rl.bench.families.fetch.stock import StockFetch
from scout_rl.bench.families.goal_batch import GoalObservation
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.solution_ladder import solution_ladder, time_rungs
from scout_rl.bench.families.start_checks import check_starts
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.ladder import level_fractions
from scout_rl.ladders.validate import Report

HOLD_STILL = np.array([0.0, 0.0, 0.0, -1.0])
"""Stay, with the gripper closed: an action of 0 for the gripper would relax the squeeze, and the object slips."""


@cache
def _simulator() -> Simulator:
    """All settings share one model, so the process has one simulator."""
    return Simulator()


@dataclass(frozen=True)
class Fetch:
    """The family's five files behind the contract."""

    key: str = "fetch"

    def sample_bank(self, setting: Setting) -> ContextBank:
        """Stock object-goal pairs by the setting's groups."""
        return contexts.sample_bank(setting)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """The stock environment as a batch."""
        return _simulator()

    def target_starts(self, bank_contexts: Mapping[str, Array]) -> States:
        """What the stock reset leaves, with the context's object and goal."""
        return contexts.target_starts(_simulator(), bank_contexts)

    def starts(self, bank_contexts: Mapping[str, Array], n_levels: int) -> States:
        """Grasped part of the way, or lying part of the way."""
        return operator.starts(_simulator(), bank_contexts, level_fractions(n_levels))

    def solver_ladder(self, bank_contexts: Mapping[str, Array], n_levels: int) -> States:
        """Shares of the scripted solution's steps."""
        return solution_ladder(self.solutions(self.target_starts(bank_contexts)), self.rungs, n_levels)

    def trajectory(self, state: Mapping[str, Array]) -> Solution:
        """The scripted solution."""
        return solver.solve(_simulator(), {name: np.asarray(array)[None] for name, array in state.items()})[0]

    def solutions(self, states: Mapping[str, Array]) -> list[Solution]:
        """The scripted solutions of n states at once."""
        return solver.solve(_simulator(), states)

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """Shares of the steps."""
        return time_rungs(n_steps, n_levels)

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """As after a stock reset."""
        return _simulator().as_starts(states)

    def check_ladder(self, bank_contexts: Mapping[str, Array], ladder: States, source: str = "manual") -> Report:
        """Offline validation; every scaffold of a hand-built in-air ladder has to be a grasp."""
        n_levels = ladder["step_count"].shape[1]
        in_air = ~contexts.is_on_table(bank_contexts)[:, None] & (np.arange(n_levels) > 0)
        return check_starts(
            _simulator(),
            ladder,
            inside=_inside,
            is_success=_is_success,
            settle=HOLD_STILL,
            holds=lambda seen: solver.is_grasped(seen["observation"]),
            coast=_simulator().coast,
            as_starts=_simulator().as_starts,
            must_hold=in_air if source == "manual" else None,
        )

    def stock_env(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> StockFetch:
        """The unmodified environment, started in the context."""
        return StockFetch(_simulator(), context, pixels)


def _inside(seen: GoalObservation) -> Array:
    return contexts.is_inside(seen["achieved_goal"])


def _is_success(seen: GoalObservation) -> Array:
    return _simulator().judge(seen["achieved_goal"], seen["desired_goal"])[1]


FAMILY = Fetch()
