"""Fetch: the stock pick-and-place with chosen object-goal pairs, restorable and stepped in threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.families.fetch import contexts, operator, solver
from scout_rl.bench.families.fetch.simulator import Simulator, simulator
from scout_rl.bench.families.fetch.stock import StockFetch
from scout_rl.bench.families.goal_batch import Handle
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.side_view import draw_side
from scout_rl.bench.families.start_checks import Grasp, check_starts
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report

HOLD_STILL = np.array([0.0, 0.0, 0.0, -1.0])
"""Stay, with the gripper closed. With 0 for the gripper the grip loosens and the object slips."""
SETTLING_STEPS = 10


class Fetch(Family):
    """The family's files behind the contract."""

    key = "fetch"
    sample_bank = staticmethod(contexts.sample_bank)
    target_starts = staticmethod(contexts.target_starts)
    starts = staticmethod(operator.starts)
    solutions = staticmethod(solver.solutions)
    stock_env = staticmethod(StockFetch)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """The stock environment as a batch."""
        return simulator()

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """As after a stock reset."""
        return simulator().as_starts(states)

    def check_ladder(self, bank_contexts: Mapping[str, Array], ladder: States, *, by_hand: bool) -> Report:
        """Every scaffold of a hand-built in-air ladder must be a grasp that the state's own controls can hold."""
        batch, in_air = simulator(), ~contexts.is_on_table(bank_contexts)

        def hold_still(state: Handle, starts: States) -> Handle:
            return batch.step(state, np.tile(HOLD_STILL, (state.batch.n, 1)))[0]

        return check_starts(
            batch,
            ladder,
            inside=lambda state: contexts.is_inside(batch.observe(state)["achieved_goal"]),
            as_starts=self.as_starts,
            grasp=Grasp(
                holds=lambda state: solver.is_grasped(batch.observe(state)["observation"]),
                possible=np.ones_like(in_air),
                needed=in_air & by_hand,
                settle=(hold_still, lambda state, starts: batch.coast(state)),
                steps=SETTLING_STEPS,
            ),
        )

    def sketch(self, axis: Any, state: States, target: States) -> None:
        """From the side."""
        draw_side(axis, simulator(), state, table=contexts.TABLE_Z - 0.025)


FAMILY = Fetch()
