"""A stock Fetch environment's state as named arrays, and back. The batch simulator restores many at once.

A state is MuJoCo's integration state, the derived arrays that the stock environment reads one substep late, the goal,
and the step counter. The integration state includes the actuator controls: without them a restored grasp opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scout_rl.bench.families.fetch.simulator import DERIVED
from scout_rl.bench.families.mujoco_batch import Array, read_data, restore_data


def restore_stock(env: Any, state: Mapping[str, Array]) -> None:
    """Put a stock environment into one state."""
    base = env.unwrapped
    restore_data(base.model, base.data, state, DERIVED)
    base.goal = state["goal"].copy()


def read_stock(env: Any) -> dict[str, Array]:
    """The state of a stock environment, but for the step counter."""
    base = env.unwrapped
    return {**read_data(base.model, base.data, DERIVED), "goal": base.goal.copy()}
