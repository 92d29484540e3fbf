"""Meta-World v3: pick-place, push and shelf-place, stepped as one batch of MuJoCo environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, Solution, States
from scout_rl.bench.families.metaworld import contexts, operator, solver
from scout_rl.bench.families.metaworld.simulator import Handle, Simulator, simulator
from scout_rl.bench.families.metaworld.stock import StockTask
from scout_rl.bench.families.metaworld.tasks import TASKS, stock
from scout_rl.bench.families.side_view import draw_side
from scout_rl.bench.families.start_checks import Grasp, check_starts
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report

GRASP_STEPS = 30
"""Without its controls the puck falls within 10 steps, and the lighter block of the shelf within 30."""
STAYS = 0.02
"""Metres that the resting hand may move in the settling steps."""
OF_THE_CONTEXT = ("task", "goal", "shelf", "object_start")
"""Arrays of a state that are the same at every level."""


class MetaWorld(Family):
    """The family's files behind the contract."""

    key = "metaworld"
    sample_bank = staticmethod(contexts.sample_bank)
    target_starts = staticmethod(contexts.target_starts)
    starts = staticmethod(operator.starts)
    stock_env = staticmethod(StockTask)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """Environments of any task; each state holds its task."""
        contexts.tasks_of(setting)
        return simulator()

    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Solution]:
        """The scripted solutions."""
        return [attempt.solution for attempt in solver.solved(states)]

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, *, by_hand: bool) -> Report:
        """Every scaffold of a hand-built ladder that lifts the object must rest in the grasp.

        A grasp settles with the state's own gripper control and without a move. Both pads must press on the object at
        every step. A state without its actuator controls (the fingers open) or its mocap target (the hand is drawn
        away) does not pass.
        """
        batch, tasks = simulator(), ladder["task"][:, 0]
        carried = np.array([TASKS[task].carried for task in tasks])

        def inside(state: Handle) -> NDArray[np.bool_]:
            """The object in the hand's workspace, on the table or above it."""
            low = state.mocap_low * [1, 1, 0]
            place = batch.observe(state)["achieved_goal"]
            return np.asarray(((place >= low) & (place <= state.mocap_high)).all(axis=1))

        def keep_closed(state: Handle, starts: States) -> Handle:
            return batch.step(state, np.pad(starts["ctrl"][:, :1], ((0, 0), (3, 0))))[0]

        return check_starts(
            batch,
            ladder,
            inside=inside,
            as_starts=self.as_starts,
            shared=OF_THE_CONTEXT,
            kinds=[TASKS[task].name for task in tasks],
            grasp=Grasp(
                holds=batch.pads_touch,
                possible=carried,
                needed=carried & by_hand,
                settle=(keep_closed,),
                steps=GRASP_STEPS,
                rest=STAYS,
            ),
        )

    def sketch(self, axis: Any, state: States, target: States) -> None:
        """From the side."""
        draw_side(axis, simulator(), state, table=0.0, shelf=stock(int(state["task"])).shelf is not None)


FAMILY = MetaWorld()
