"""Fetch states as named arrays, and the way from there into the stock environment and back.

A state is MuJoCo's integration state (actuator controls, mocap target and warmstart included: without the controls a
restored grasp opens and drops the object), the derived arrays that the stock environment reads one substep late, the
goal, and the step counter. The batch simulator restores many at once; here is the single stock environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scout_rl.bench.families.mujoco_batch import Array, read_data, restore_data


def restore_stock(env: Any, state: Mapping[str, Array]) -> None:
    """Put a stock environment into one start."""
    base = env.unwrapped
    restore_data(base.model, base.data, state)
    base.goal = state["goal"].copy()


def read_stock(env: Any) -> dict[str, Array]:
    """The integration state and the goal of a stock environment, by name."""
    base = env.unwrapped
    return {**read_data(base.model, base.data), "goal": base.goal.copy()}
