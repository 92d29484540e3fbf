"""One scripted policy for the three tasks: over the object, down, close, carry.

The phase is read off the observation, so the policy continues from any state. Meta-World's own scripted policies
(``metaworld.policies``) solve every pick-place and push context, but not 4 of our 100 shelf contexts in 300 steps: the
fingers catch on the shelf's edge and lose the block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.metaworld.tasks import Array, task_index

SHELF = task_index("shelf-place-v3")
GRIP = np.array([-0.005, 0.0, 0.0])
"""From the object to where the hand's centre grips it best (as in the stock policies)."""
HOVER, DOWN = 0.1, 0.03
"""Heights of the hand above the object: before the descent, and at its end."""
WIDE, NARROW, NEAR = 0.03, 0.02, 0.09
"""The hand descends within NARROW of the object's axis; lower than NEAR above the object, within WIDE."""
AROUND = 0.05
"""The fingers are around the object when the hand is less than this above it; then they close, ..."""
CLOSED = 0.73
"""... until the gripper's opening is less than this."""
SLIP, HELD = 0.035, 0.055
"""Beyond these distances from the hand, sideways and down, the object is lost."""
CARRY = 0.33
"""Height at which a block is carried to a shelf: the fingers below it clear the board, whose top is at 0.25."""
FRONT = 0.14
"""The block rises before it is closer than this to the goal, where the shelf begins."""
OFF_THE_TABLE = 0.06
GAIN = 25.0
"""Full speed from 4 cm away."""


def act(task: Array, observation: Array) -> NDArray[np.float32]:
    """The actions [n, 4] for stock observations [n, 39] of the tasks int[n]."""
    hand, opening, thing = observation[:, :3], observation[:, 3], observation[:, 4:7]
    aside = np.linalg.norm(hand[:, :2] - (thing + GRIP)[:, :2], axis=1)
    above = hand[:, 2] - thing[:, 2]
    over = aside < np.where(above < NEAR, WIDE, NARROW)
    around = (aside < SLIP) & (above < AROUND)
    held = (aside < SLIP) & (above < HELD) & (opening < CLOSED)

    way = thing + GRIP - hand
    way[:, 2] += np.where(over, DOWN, HOVER)
    way[around] = 0
    way[held] = _carry(task, thing, observation[:, 36:39])[held]
    move = GAIN * way
    move /= np.maximum(1, np.abs(move).max(axis=1, keepdims=True))  # straight
    return np.column_stack([move, np.where(around | held, 1.0, -1.0)]).astype(np.float32)


def _carry(task: Array, thing: Array, goal: Array) -> Array:
    """Where to take a held object: straight to the goal, or up, then over the edge of a shelf."""
    way: Array = goal - thing
    shelf = task == SHELF
    way[shelf, 2] = CARRY - thing[shelf, 2]
    rising = shelf & (thing[:, 2] < CARRY - 0.015) & (thing[:, 1] < goal[:, 1] - FRONT)
    way[rising, 1] = 0
    way[rising & (thing[:, 2] < OFF_THE_TABLE), 0] = 0
    return way
