"""Offline validation of Meta-World ladders: what every family checks, and whether each grasp is one.

A grasp is checked with the state's own gripper control held on, for thirty steps without a move: both pads have to
press on the object all the time, and the hand has to stay where it is. So a state that lost its actuator controls (the
fingers open) or its mocap target (the hand is drawn away) does not pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.goal_batch import GoalObservation
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.simulator import Simulator, near
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock
from scout_rl.bench.families.start_checks import check_starts
from scout_rl.ladders.validate import Problem, Report

GRASP_STEPS = 30
"""Without its controls the puck falls within 10 steps, but the light block of the shelf only within 30."""
STAYS = 0.02
"""Metres that the resting hand may move in the settling steps."""
STILL_AND_CLOSED = np.array([0.0, 0.0, 0.0, 1.0])
_CONTEXT = ("task", "goal", "shelf", "object_start")


def check_ladder(simulator: Simulator, ladder: Mapping[str, Array], source: str = "manual") -> Report:
    """Check every cell of a ladder [contexts, levels, ...]; scaffolds of a hand-built one rest in the grasp."""
    problems: list[Problem] = []
    warnings: list[str] = []
    for index in np.unique(ladder["task"][:, 0]):
        rows = np.flatnonzero(ladder["task"][:, 0] == index)
        part = {name: np.asarray(array)[rows] for name, array in ladder.items()}
        report = _check_task(simulator, int(index), part, source)
        problems += [p._replace(context=int(rows[p.context])) for p in report.problems]
        warnings += [f"{TASKS[index].name}: {warning}" for warning in report.warnings]
    n_cells = int(np.prod(ladder["task"].shape))
    return Report(n_cells, tuple(sorted(problems)), tuple(warnings))


def _check_task(simulator: Simulator, index: int, ladder: States, source: str) -> Report:
    facts = stock(index)

    def inside(seen: GoalObservation) -> NDArray[np.bool_]:
        """The object in the hand's workspace, on the table or above it."""
        thing = seen["achieved_goal"]
        low, high = np.array([*facts.mocap_low[:2], 0.0]), facts.mocap_high
        return np.asarray(((thing >= low) & (thing <= high)).all(axis=1))

    def is_success(seen: GoalObservation) -> NDArray[np.bool_]:
        return near(seen["achieved_goal"], seen["desired_goal"], TASKS[index].radius)

    report = check_starts(simulator, ladder, inside=inside, is_success=is_success, settle=STILL_AND_CLOSED)
    problems = list(report.problems)
    for name in _CONTEXT:
        strange = (ladder[name] != ladder[name][:, :1]).reshape(*ladder["task"].shape, -1).any(axis=-1)
        reason = f"carries the {name} of another context"
        problems += [Problem(int(c), int(level), 0, reason) for c, level in np.argwhere(strange)]
    if TASKS[index].carried:
        usable = np.ones(ladder["task"].shape, dtype=np.bool_)
        for problem in problems:
            usable[problem.context, problem.level] = False
        problems += _grasp_problems(simulator, ladder, usable, at_rest=source == "manual")
    return Report(report.n_cells, tuple(problems), report.warnings)


def _grasp_problems(
    simulator: Simulator, ladder: States, usable: NDArray[np.bool_], *, at_rest: bool
) -> Iterator[Problem]:
    """``at_rest``: every scaffold has to be a grasp at rest; else those that are a grasp have to keep it."""
    cells = np.argwhere(usable & (np.arange(usable.shape[1]) > 0))
    if not len(cells):
        return
    starts = {name: array[cells[:, 0], cells[:, 1]] for name, array in ladder.items()}
    places = np.split(cells, range(codec.CHUNK, len(cells), codec.CHUNK))
    for part, there in zip(codec.chunks(starts), places, strict=True):
        yield from _lost(simulator, part, there, at_rest=at_rest)


def _lost(simulator: Simulator, starts: States, cells: Array, *, at_rest: bool) -> Iterator[Problem]:
    handle = simulator.reset_to(starts)
    action = np.zeros((len(cells), 4))
    action[:, 3] = starts["ctrl"][:, 0]
    hand = simulator.observe(handle)["observation"][:, :3]
    held = simulator.pads_touch(handle)
    if at_rest:
        yield from (Problem(int(c), int(level), 0, "does not hold at the start") for c, level in cells[~held])
    for number in range(1, GRASP_STEPS + 1):
        handle, transition = simulator.step(handle, action)
        now = simulator.pads_touch(handle)
        stays = np.linalg.norm(transition.observation["observation"][:, :3] - hand, axis=1) < STAYS
        dropped = f"does not hold: dropped after {number} settling steps"
        yield from (Problem(int(c), int(level), 0, dropped) for c, level in cells[held & ~now])
        held &= now
        if at_rest:
            drawn = f"does not rest: the hand is drawn away after {number} settling steps"
            yield from (Problem(int(c), int(level), 0, drawn) for c, level in cells[held & ~stays])
            held &= stays
