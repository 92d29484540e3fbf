"""A Fetch context: where the object lies at the start, and the goal, both drawn as the stock reset draws them."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.fetch.simulator import shared_stock_env, simulator
from scout_rl.bench.families.group_sampling import fill_groups
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

# The stock environment reads these off a simulation, whose last bits differ between CPUs. Here they are rounded to
# 0.1 mm, so that a bank has the same hash everywhere.
GRIPPER_XY = np.array([1.3419, 0.7491])
"""Where the gripper starts; object and goal are drawn around it."""
TABLE_Z = 0.4247
"""Height of the object's centre when it lies on the table."""
RANGE = 0.15
CLEARANCE = 0.1
"""The least distance of the object's start from the point under the gripper."""
MAX_HEIGHT = 0.45

SLACK = 0.001


def sample_bank(setting: Setting) -> ContextBank:
    """Draw stock object-goal pairs until every group of both parts is full."""
    return fill_groups(setting, _draw, _features)


def _draw(generator: np.random.Generator) -> States:
    object_xy = GRIPPER_XY.copy()
    while np.linalg.norm(object_xy - GRIPPER_XY) < CLEARANCE:
        object_xy = GRIPPER_XY + generator.uniform(-RANGE, RANGE, 2)
    goal = np.append(GRIPPER_XY + generator.uniform(-RANGE, RANGE, 2), TABLE_Z)
    if generator.uniform() < 0.5:
        goal[2] += generator.uniform(0, MAX_HEIGHT)
    return {"object_xy": object_xy.round(6), "goal": goal.round(6)}


def _features(context: Mapping[str, Array]) -> dict[str, float]:
    """``goal_height`` above the lying object's centre, and ``distance`` from there to the goal, in metres."""
    start = np.append(context["object_xy"], TABLE_Z)
    goal = context["goal"]
    return {"goal_height": float(goal[2] - TABLE_Z), "distance": float(np.linalg.norm(goal - start))}


def is_on_table(contexts: Mapping[str, Array]) -> NDArray[np.bool_]:
    """bool[n]: whether the goal lies on the table. No grasp is needed then, so no scaffold has one."""
    return np.asarray(contexts["goal"])[..., 2] < TABLE_Z + SLACK


def check(contexts: Mapping[str, Array]) -> None:
    """Refuse contexts that the stock reset cannot draw."""
    for x, (object_xy, goal) in enumerate(zip(contexts["object_xy"], contexts["goal"], strict=True)):
        if not (np.isfinite(object_xy).all() and np.abs(object_xy - GRIPPER_XY).max() <= RANGE + SLACK):
            raise Refusal(f"context {x}: the object at {_text(object_xy)} is outside the workspace.")
        height = goal[2] - TABLE_Z
        inside = np.abs(goal[:2] - GRIPPER_XY).max() <= RANGE + SLACK and -SLACK <= height <= MAX_HEIGHT + SLACK
        if not (np.isfinite(goal).all() and inside):
            raise Refusal(f"context {x}: the goal at {_text(goal)} is outside the workspace.")


def is_inside(position: Array) -> NDArray[np.bool_]:
    """bool[n]: the object lies on the table or is held in reach above it."""
    low = np.append(GRIPPER_XY - RANGE - 0.05, TABLE_Z - 0.01)
    high = np.append(GRIPPER_XY + RANGE + 0.05, TABLE_Z + MAX_HEIGHT + 0.05)
    return np.asarray(((position > low) & (position < high)).all(axis=1))


def target_starts(contexts: Mapping[str, Array]) -> States:
    """The level-0 states [contexts, ...]: a stock reset with the context's object and goal."""
    check(contexts)
    return starts_at(contexts["object_xy"], contexts["goal"])


def starts_at(object_xy: Array, goal: Array) -> States:
    """Stock starts with the object lying at ``object_xy`` [n, 2]."""
    env, layout = shared_stock_env(), simulator().pool.layout
    data = mujoco.MjData(env.model)
    data.time = env.initial_time
    data.qpos[:], data.qvel[:] = env.initial_qpos, env.initial_qvel
    at = int(env.model.joint("object0:joint").qposadr[0])
    vectors = []
    for xy in object_xy:
        data.qpos[at : at + 2] = xy
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(env.model, data)  # leaves the warmstart that a stock reset leaves
        vectors.append(layout.read(env.model, data))
    states = {**layout.unpack(np.array(vectors)), **layout.identity(len(vectors))}
    return simulator().as_starts({**states, "goal": np.array(goal, dtype=np.float64)})


def _text(position: Array) -> str:
    return "(" + ", ".join(f"{v:.3f}" for v in position) + ")"
