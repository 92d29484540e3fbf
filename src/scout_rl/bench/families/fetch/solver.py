"""A four-phase scripted pick-and-place: above the object, down to it, close, carry.

The phase is read off the observation, so the solver continues from any state, also a grasped one. It solves a batch at
once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution
from scout_rl.bench.families.fetch.simulator import ACTION_SCALE, simulator
from scout_rl.bench.families.goal_batch import GoalObservation, solve
from scout_rl.bench.families.mujoco_batch import Array

HOVER = 0.08
"""Metres above the object from which the gripper descends."""
OVER = 0.02
"""The gripper descends, and closes, within this horizontal distance."""
LEVEL = 0.012
"""It closes within this vertical distance."""
SLIP = 0.03
"""A closed gripper holds the object as long as neither distance exceeds this."""
TIGHT = 0.051
"""The fingers press on the object, which is 0.05 wide, when they are closer together than this."""


def is_grasped(observation: NDArray[np.float64]) -> NDArray[np.bool_]:
    """bool[n]: the fingers press on the object between them."""
    offset = observation[:, 6:9]
    near = (np.linalg.norm(offset[:, :2], axis=1) < SLIP) & (np.abs(offset[:, 2]) < SLIP)
    return np.asarray(near & (observation[:, 9] + observation[:, 10] < TIGHT))


def act(goal_observation: GoalObservation) -> NDArray[np.float64]:
    """The action [n, 4] of each environment's phase."""
    observation, goal = goal_observation["observation"], goal_observation["desired_goal"]
    gripper, thing = observation[:, :3], observation[:, 3:6]
    offset = thing - gripper
    over = np.linalg.norm(offset[:, :2], axis=1) < OVER
    grasped = is_grasped(observation)
    closing = over & (np.abs(offset[:, 2]) < LEVEL) & ~grasped
    descending = over & ~closing & ~grasped

    offset_to_target = offset + np.array([0, 0, HOVER])
    offset_to_target[descending] = offset[descending]
    offset_to_target[closing] = 0
    offset_to_target[grasped] = (goal - thing)[grasped]
    move = offset_to_target / ACTION_SCALE
    move /= np.maximum(1, np.abs(move).max(axis=1, keepdims=True))  # straight, at full speed
    return np.column_stack([move, np.where(closing | grasped, -1.0, 1.0)])


def solutions(states: Mapping[str, Array]) -> list[Solution]:
    """The scripted solutions of n states."""
    return solve(simulator(), states, act)
