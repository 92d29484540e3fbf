"""The hand-built reset operator: the object at a fraction of the way to the goal.

- A goal in the air: the object is grasped and at rest, at that fraction of the straight line after the grasp.
- A goal on the table: the object lies at that fraction of the way. The gripper is where it always starts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.families.fetch import contexts as fetch_contexts
from scout_rl.bench.families.fetch.simulator import HORIZON, simulator
from scout_rl.bench.families.fetch.solver import act, is_grasped
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.ladder import level_fractions

ARRIVED = 0.01
"""A carried object has arrived when it is this close to its point ..."""
AT_REST = 0.0005
"""... and moves less than this per step. Near the end of its reach the arm stays up to 8 mm short."""
CHUNK = 64
"""Cells built at once; it bounds the memory."""


def starts(contexts: Mapping[str, Array], n_levels: int) -> States:
    """The ladder [contexts, levels, ...]."""
    ladder = [fetch_contexts.target_starts(contexts)]
    on_table = fetch_contexts.is_on_table(contexts)
    for fraction in level_fractions(n_levels)[1:]:
        level = {name: array.copy() for name, array in ladder[0].items()}
        for rows, build in ((np.flatnonzero(on_table), _lying), (np.flatnonzero(~on_table), _grasped)):
            for chunk in np.split(rows, range(CHUNK, len(rows), CHUNK)):
                part = {name: np.asarray(a)[chunk] for name, a in contexts.items()}
                if len(chunk):
                    for name, array in build(part, fraction).items():
                        level[name][chunk] = array
        ladder.append(level)
    return {name: np.stack([level[name] for level in ladder], axis=1) for name in ladder[0]}


def _lying(contexts: Mapping[str, Array], fraction: float) -> States:
    """The object on the table, at a fraction of the way."""
    object_xy, goal = contexts["object_xy"], contexts["goal"]
    return fetch_contexts.starts_at(object_xy + fraction * (goal[:, :2] - object_xy), goal)


def _grasped(contexts: Mapping[str, Array], fraction: float) -> States:
    """Let the solver grasp the object, carry it to a fraction of the way, and hold it there."""
    batch = simulator()
    handle = batch.reset_to(fetch_contexts.target_starts(contexts))
    handle.goal[:] = contexts["goal"] + 1.0  # until the grasp, the solver looks only at the object
    n = len(handle.goal)
    aimed, arrived = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    starts: States = {}
    observation = batch.observe(handle)
    for _ in range(HORIZON):
        before = observation["achieved_goal"]
        grasped = is_grasped(observation["observation"]) & ~aimed
        handle.goal[grasped] = before[grasped] + fraction * (contexts["goal"][grasped] - before[grasped])
        aimed |= grasped
        observation["desired_goal"] = handle.goal.copy()
        handle, result = batch.step(handle, act(observation))
        observation = result.observation
        achieved = observation["achieved_goal"]
        still = np.linalg.norm(achieved - before, axis=1) < AT_REST
        close = np.linalg.norm(achieved - handle.goal, axis=1) < ARRIVED
        new = aimed & close & still & is_grasped(observation["observation"]) & ~arrived
        if new.any():
            states = batch.get_states(handle)
            starts = starts or {name: np.zeros_like(array) for name, array in states.items()}
            for name, array in states.items():
                starts[name][new] = array[new]
            arrived |= new
        if arrived.all():
            return batch.as_starts({**starts, "goal": np.array(contexts["goal"], dtype=np.float64)})
    raise Refusal(
        f"no grasped start at {fraction:.0%} of the way for the goal {contexts['goal'][np.argmin(arrived)].tolist()}."
    )
