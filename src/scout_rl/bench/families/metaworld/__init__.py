"""Meta-World v3: pick-place, push and shelf-place, stepped as one batch of MuJoCo environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, Solution, States
from scout_rl.bench.families.metaworld import contexts, operator, solver
from scout_rl.bench.families.metaworld.simulator import Handle, Simulator
from scout_rl.bench.families.metaworld.stock import StockTask
from scout_rl.bench.families.metaworld.tasks import TASKS, stock
from scout_rl.bench.families.side_view import draw_side
from scout_rl.bench.families.start_checks import Grasp, check_starts
from scout_rl.bench.settings.bank import ContextBank
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

    def sample_bank(self, setting: Setting) -> ContextBank:
        """Task vectors within the stock ranges."""
        return contexts.sample_bank(setting)

    def batch_simulator(self, setting: Setting) -> Simulator:
        """Environments of any task; each state holds its task."""
        contexts.tasks_of(setting)
        return Simulator(solver.HORIZON)

    def target_starts(self, bank_contexts: Mapping[str, NDArray[Any]]) -> States:
        """The stock starts."""
        return contexts.target_starts(bank_contexts)

    def starts(self, bank_contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """Grasped, or lying at a fraction of the way."""
        return operator.starts(bank_contexts, n_levels)

    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Solution]:
        """The scripted solutions."""
        return [attempt.solution for attempt in solver.solved(states)]

    def as_starts(self, states: Mapping[str, NDArray[Any]]) -> States:
        """Step counters at 0; nothing else depends on how a state was reached."""
        return {**states, "step_count": np.zeros_like(states["step_count"])}

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, *, by_hand: bool) -> Report:
        """Every scaffold of a hand-built ladder that lifts the object must rest in the grasp.

        A grasp settles with the state's own gripper control and without a move. Both pads must press on the object at
        every step. A state without its actuator controls (the fingers open) or its mocap target (the hand is drawn
        away) does not pass.
        """
        simulator, tasks = solver.shared_simulator(), ladder["task"][:, 0]
        carried = np.array([TASKS[task].carried for task in tasks])

        def inside(state: Handle) -> NDArray[np.bool_]:
            """The object in the hand's workspace, on the table or above it."""
            low = state.mocap_low * [1, 1, 0]
            place = simulator.observe(state)["achieved_goal"]
            return np.asarray(((place >= low) & (place <= state.mocap_high)).all(axis=1))

        def keep_closed(state: Handle, starts: States) -> Handle:
            return simulator.step(state, np.pad(starts["ctrl"][:, :1], ((0, 0), (3, 0))))[0]

        return check_starts(
            simulator,
            ladder,
            inside=inside,
            as_starts=self.as_starts,
            shared=OF_THE_CONTEXT,
            kinds=[TASKS[task].name for task in tasks],
            grasp=Grasp(
                holds=simulator.pads_touch,
                possible=carried,
                needed=carried & by_hand,
                settle=(keep_closed,),
                steps=GRASP_STEPS,
                rest=STAYS,
            ),
        )

    def stock_env(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> StockTask:
        """The unmodified environment, started in the context."""
        return StockTask(solver.HORIZON, context, pixels)

    def sketch(self, axis: Any, state: States, target: States) -> None:
        """From the side."""
        simulator = solver.shared_simulator()
        handle = simulator.reset_to({name: array[None] for name, array in state.items()})
        observation = simulator.observe(handle)["observation"][0]
        shelf = stock(int(state["task"])).shelf is not None
        draw_side(axis, observation[:3], observation[4:7], state["goal"], table=0.0, shelf=shelf)


FAMILY = MetaWorld()
