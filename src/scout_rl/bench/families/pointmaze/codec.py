"""A stock PointMaze environment's state as named arrays, and back. The batch simulator restores many at once.

A state is MuJoCo's integration state (position and velocity, the last force, the solver's warmstart), the goal, and the
step counter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scout_rl.bench.families.mujoco_batch import Array, read_data, restore_data


def restore_stock(env: Any, state: Mapping[str, Array]) -> None:
    """Put a stock environment into one state."""
    base = env.unwrapped
    restore_data(base.point_env.model, base.point_env.data, state)
    base.goal = state["goal"].copy()
    base.update_target_site_pos()


def read_stock(env: Any) -> dict[str, Array]:
    """The state of a stock environment, but for the step counter."""
    base = env.unwrapped
    return {**read_data(base.point_env.model, base.point_env.data), "goal": base.goal.copy()}
