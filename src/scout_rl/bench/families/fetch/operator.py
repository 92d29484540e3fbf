"""The hand-built reset operator: the object part of the way to the goal.

- A goal in the air: grasped, at rest, at that fraction of the solver's path after the grasp (a straight line).
- A goal on the table: the object lies at that fraction of the way, the gripper is where it always starts; no grasp.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.families.fetch import contexts as fetch_contexts
from scout_rl.bench.families.fetch.simulator import HORIZON, Simulator
from scout_rl.bench.families.fetch.solver import act, is_grasped
from scout_rl.bench.families.mujoco_batch import Array

ARRIVED = 0.01
"""A carried object has arrived within this distance of its point (near the end of its reach the arm stays up to 8 mm
short), ..."""
AT_REST = 0.0005
"""... once it moves less than this in a step."""
CHUNK = 64
"""Cells built at once; bounds the memory."""


def starts(simulator: Simulator, contexts: Mapping[str, Array], fractions: tuple[float, ...]) -> States:
    """The ladder [contexts, levels, ...]."""
    ladder = [fetch_contexts.target_starts(simulator, contexts)]
    on_table = fetch_contexts.is_on_table(contexts)
    for fraction in fractions[1:]:
        level = {name: array.copy() for name, array in ladder[0].items()}
        for rows, build in ((np.flatnonzero(on_table), _lying), (np.flatnonzero(~on_table), _grasped)):
            for chunk in np.split(rows, range(CHUNK, len(rows), CHUNK)):
                part = {name: np.asarray(a)[chunk] for name, a in contexts.items()}
                if len(chunk):
                    for name, array in build(simulator, part, fraction).items():
                        level[name][chunk] = array
        ladder.append(level)
    return {name: np.stack([level[name] for level in ladder], axis=1) for name in ladder[0]}


def _lying(simulator: Simulator, contexts: Mapping[str, Array], fraction: float) -> States:
    """The object on the table, part of the way."""
    thing, goal = contexts["object_xy"], contexts["goal"]
    return fetch_contexts.starts_at(simulator, thing + fraction * (goal[:, :2] - thing), goal)


def _grasped(simulator: Simulator, contexts: Mapping[str, Array], fraction: float) -> States:
    """Let the solver grasp the object and carry it to the point part of the way, and hold it there."""
    handle = simulator.reset_to(fetch_contexts.target_starts(simulator, contexts))
    handle.goal[:] = contexts["goal"] + 1.0  # until the grasp, the solver looks at the object alone
    n = len(handle.goal)
    aimed, arrived = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    found: States = {}
    seen = simulator.observe(handle)
    for _ in range(HORIZON):
        before = seen["achieved_goal"]
        now = is_grasped(seen["observation"]) & ~aimed
        handle.goal[now] = before[now] + fraction * (contexts["goal"][now] - before[now])
        aimed |= now
        seen["desired_goal"] = handle.goal.copy()
        handle, transition = simulator.step(handle, act(seen))
        seen = transition.observation
        achieved = seen["achieved_goal"]
        still = np.linalg.norm(achieved - before, axis=1) < AT_REST
        there = np.linalg.norm(achieved - handle.goal, axis=1) < ARRIVED
        new = aimed & there & still & is_grasped(seen["observation"]) & ~arrived
        if new.any():
            states = simulator.get_states(handle)
            found = found or {name: np.zeros_like(array) for name, array in states.items()}
            for name, array in states.items():
                found[name][new] = array[new]
            arrived |= new
        if arrived.all():
            return simulator.as_starts({**found, "goal": np.array(contexts["goal"], dtype=np.float64)})
    raise ValueError(
        f"no grasped start at {fraction:.0%} of the way for the goal {contexts['goal'][np.argmin(arrived)].tolist()}."
    )
