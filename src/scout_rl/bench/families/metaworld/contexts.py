"""A Meta-World context: a task and its vector (the object's start and the goal), as the stock tasks draw it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.group_sampling import counts, fill_from
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock, task_index
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

DECIMALS = 6
"""Vectors are rounded to micrometres, so that a bank has the same hash on every CPU."""
_MAX_CANDIDATES = 10_000
MOCAP_QUAT = np.array([1.0, 0.0, 1.0, 0.0])
"""How the stock environment holds the hand."""
_RESET_STEPS, FRAME_SKIP = 50, 5
_OPEN = np.array([-1.0, 1.0])
"""The actuator controls of the open gripper."""


def tasks_of(setting: Setting) -> tuple[int, ...]:
    """The indices of the setting's tasks, one per evaluation group: ``"push-v3+shelf-place-v3"``."""
    indices = tuple(task_index(name) for name in setting.task.split("+"))
    if len(indices) != len(setting.groups):
        raise Refusal(f"setting {setting.key!r} has {len(indices)} tasks and {len(setting.groups)} groups")
    return indices


def sample_bank(setting: Setting) -> ContextBank:
    """Uniform within each stock task's ranges, at least its separation apart; one group per task."""
    return fill_from(setting, _candidates(setting))


def _candidates(setting: Setting) -> Iterator[tuple[States, int]]:
    """As many contexts of each group as both parts need, with the group's index."""
    generator = np.random.default_rng(setting.bank_seed)
    for n in (setting.n_train, setting.n_held_out):
        for group, (index, count) in enumerate(zip(tasks_of(setting), counts(setting.groups, n), strict=True)):
            for _ in range(count):
                yield {"task": np.array(index, dtype=np.int32), "vector": _sample(index, generator)}, group


def _sample(index: int, generator: np.random.Generator) -> NDArray[np.float64]:
    facts = stock(index)
    for _ in range(_MAX_CANDIDATES):
        vector = np.round(generator.uniform(facts.context_low, facts.context_high), DECIMALS)
        if _separation(vector) >= TASKS[index].separation:
            return vector
    raise Refusal(f"{TASKS[index].name}: no vector of {_MAX_CANDIDATES} keeps object and goal apart")


def _separation(vector: Array) -> float:
    return float(np.linalg.norm(vector[:2] - vector[3:5]))


def check(contexts: Mapping[str, Array]) -> None:
    """Refuse contexts that the stock task cannot draw. With object and goal too close, its reset would never end."""
    for i, (index, vector) in enumerate(zip(contexts["task"], contexts["vector"], strict=True)):
        if not 0 <= index < len(TASKS):
            raise Refusal(f"context {i}: its task is {int(index)}, and there are {len(TASKS)} tasks")
        facts, task = stock(int(index)), TASKS[int(index)]
        outside = ~((vector >= facts.context_low) & (vector <= facts.context_high))
        if outside.any():
            k = int(np.argmax(outside))
            what = f"{'object' if k < 3 else 'goal'} {'xyz'[k % 3]}"
            raise Refusal(
                f"context {i}: {what} is {vector[k]:g}, outside the {facts.context_low[k]:g} to "
                f"{facts.context_high[k]:g} of {task.name}"
            )
        if _separation(vector) < task.separation:
            raise Refusal(
                f"context {i}: object and goal are {_separation(vector):.3f} m apart, and {task.name} needs "
                f"{task.separation:g} m"
            )


def target_starts(contexts: Mapping[str, Array]) -> States:
    """The level-0 states [contexts, ...], bit for bit those of the stock reset.

    A stock reset drives the hand to its place (250 ``mj_step``, the same for every context), then places object, goal
    and shelf by the vector. The first part is done once per task.
    """
    check(contexts)
    task = np.asarray(contexts["task"], dtype=np.int32)
    placed = [_place(int(index), vector) for index, vector in zip(task, contexts["vector"], strict=True)]
    vectors, goal, shelf, object_start = (np.stack(column) for column in zip(*placed, strict=True))
    return {
        **codec.layout().unpack(vectors),
        "goal": goal,
        "shelf": shelf,
        "object_start": object_start,
        **codec.identity(task),
        "task": task,
        "step_count": np.zeros(len(task), dtype=np.int32),
    }


def _place(index: int, vector: Array) -> tuple[Array, Array, Array, Array]:
    """MuJoCo's state, goal, shelf and object start of one context, in the stock order of calls."""
    facts, (ready, height) = stock(index), _hand_ready(index)
    model, data = _scratch(index)
    mujoco.mj_setState(model, data, ready, codec.layout().bits)
    if facts.shelf is None:
        shelf = np.zeros(3)
        goal = vector[3:].copy()
    else:
        shelf = (vector - np.array([0, 0, 0, 0, 0, 0.3]))[3:]
        model.body_pos[facts.shelf] = shelf
        mujoco.mj_forward(model, data)
        goal = model.site("goal").pos + shelf
    if TASKS[index].name == "push-v3":
        goal[2] = height
    # Pick-place takes the vector's height, the other two the height of the resting object.
    object_start = np.array([*vector[:2], vector[2] if TASKS[index].name == "pick-place-v3" else height])
    data.qpos[9:12] = object_start  # at rest, as the stock `_set_obj_xyz` places it
    data.qvel[9:15] = 0
    mujoco.mj_forward(model, data)
    return codec.layout().read(model, data), goal, shelf, object_start


@cache
def _hand_ready(index: int) -> tuple[Array, float]:
    """MuJoCo's state after the stock ``_reset_hand``, and the height of the object that rests on the table."""
    facts = stock(index)
    data = mujoco.MjData(facts.model)
    move_hand(facts.model, data, facts.hand_init)
    return codec.layout().read(facts.model, data), float(data.xpos[facts.object, 2])


def move_hand(model: Any, data: Any, place: Array) -> None:
    """The stock ``_reset_hand`` to any place: the open hand moves there and comes to rest."""
    for _ in range(_RESET_STEPS):
        data.mocap_pos[0] = place
        data.mocap_quat[0] = MOCAP_QUAT
        data.ctrl[:] = _OPEN
        mujoco.mj_step(model, data, FRAME_SKIP)


@cache
def _scratch(index: int) -> tuple[Any, Any]:
    """A copy of the task's model, and data, to place things in."""
    model = copy.copy(stock(index).model)
    return model, mujoco.MjData(model)
