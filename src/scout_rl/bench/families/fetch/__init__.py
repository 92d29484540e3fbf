"""Fetch: the stock pick-and-place with chosen object-goal pairs, restorable and stepped in threads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from scout_rl.bench.families.family import Family, Solution, States
from scout_rl.bench.families.fetch import contexts, operator, solver
from scout_rl.bench.families.fetch.simulator import Simulator
from scout_rl.bench.families.fetch.stock import StockFetch
from scout_rl.bench.families.goal_batch import Handle
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.side_view import draw_side
from scout_rl.bench.families.start_checks import Grasp, check_starts
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.ladder import level_fractions
from scout_rl.ladders.validate import Report

HOLD_STILL = np.array([0.0, 0.0, 0.0, -1.0])
"""Stay, with the gripper closed. With 0 for the gripper the grip loosens and the object slips."""
SETTLING_STEPS = 10


@cache
def _simulator() -> Simulator:
    """The process's simulator: all settings share one model."""
    return Simulator()


class Fetch(Family):
    """The family's files behind the contract."""

    key = "fetch"

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

    def solutions(self, states: Mapping[str, Array]) -> list[Solution]:
        """The scripted solutions."""
        return solver.solve(_simulator(), states)

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """As after a stock reset."""
        return _simulator().as_starts(states)

    def check_ladder(self, bank_contexts: Mapping[str, Array], ladder: States, *, by_hand: bool) -> Report:
        """Every scaffold of a hand-built in-air ladder must be a grasp that the state's own controls can hold."""
        simulator, in_air = _simulator(), ~contexts.is_on_table(bank_contexts)

        def hold_still(state: Handle, starts: States) -> Handle:
            return simulator.step(state, np.tile(HOLD_STILL, (state.batch.n, 1)))[0]

        def coast(state: Handle, starts: States) -> Handle:
            simulator.coast(state)
            return state

        return check_starts(
            simulator,
            ladder,
            inside=lambda state: contexts.is_inside(simulator.observe(state)["achieved_goal"]),
            as_starts=self.as_starts,
            grasp=Grasp(
                holds=lambda state: solver.is_grasped(simulator.observe(state)["observation"]),
                possible=np.ones_like(in_air),
                needed=in_air & by_hand,
                settle=(hold_still, coast),
                steps=SETTLING_STEPS,
            ),
        )

    def stock_env(self, setting: Setting, context: Mapping[str, Array], *, pixels: int = 0) -> StockFetch:
        """The unmodified environment, started in the context."""
        return StockFetch(_simulator(), context, pixels)

    def sketch(self, axis: Any, state: States, target: States) -> None:
        """From the side."""
        handle = _simulator().reset_to({name: array[None] for name, array in state.items()})
        observation = _simulator().observe(handle)["observation"][0]
        draw_side(axis, observation[:3], observation[3:6], state["goal"], table=contexts.TABLE_Z - 0.025)


FAMILY = Fetch()
