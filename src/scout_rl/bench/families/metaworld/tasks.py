"""The simulated Meta-World tasks, and what each process reads once from their stock environments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import mujoco
import numpy as np
from metaworld.env_dict import ALL_V3_ENVIRONMENTS
from numpy.typing import NDArray

from scout_rl.bench.families.mujoco_batch import fingerprint
from scout_rl.files.refusal import Refusal

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """One stock task, with the constants of its stock methods."""

    name: str
    """The stock environment's id."""
    radius: float
    """Success: the object is at most this far from the goal."""
    separation: float
    """The least distance on the table between the object's start and the goal."""
    carried: bool
    """Whether the object is lifted. Then every scaffold is a grasped state."""


TASKS = (
    Task("pick-place-v3", radius=0.07, separation=0.15, carried=True),
    Task("push-v3", radius=0.05, separation=0.15, carried=False),
    Task("shelf-place-v3", radius=0.07, separation=0.1, carried=True),
)
"""A state's ``task`` is an index into this table: append, never reorder."""


def task_index(name: str) -> int:
    """The index of the task of that name."""
    for index, task in enumerate(TASKS):
        if task.name == name:
            return index
    raise Refusal(f"no Meta-World task {name!r} is simulated; the tasks are {', '.join(task.name for task in TASKS)}")


def stock_env(name: str, **options: Any) -> Any:
    """The unmodified environment with a visible goal (as in Meta-World's MT1).

    Its task vector ``env._last_rand_vec`` can be set; ``set_task`` does the same from a pickled task.
    """
    env = ALL_V3_ENVIRONMENTS[TASKS[task_index(name)].name](**options)
    env._partially_observable = False
    vars(env).pop("sawyer_observation_space", None)  # cached with the goal hidden
    env.observation_space = env.sawyer_observation_space
    env._freeze_rand_vec = True
    env._set_task_called = True
    return env


class Stock:
    """The model of a task and the indices of its parts; read only."""

    def __init__(self, index: int) -> None:
        env = stock_env(TASKS[index].name)
        self.env: Any = env
        self.model: Any = env.model
        model = self.model
        self.hand, self.right_claw, self.left_claw, self.object = (
            int(model.body(name).id) for name in ("hand", "rightclaw", "leftclaw", "obj")
        )
        self.object_geom = int(model.geom("objGeom").id)
        self.pads = tuple(int(model.geom(name).id) for name in ("leftpad_geom", "rightpad_geom"))
        shelf = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "shelf")
        self.shelf: int | None = shelf if shelf >= 0 else None
        self.context_low: Array = env._random_reset_space.low
        self.context_high: Array = env._random_reset_space.high
        self.observation_low: Array = env.sawyer_observation_space.low
        self.observation_high: Array = env.sawyer_observation_space.high
        self.mocap_low: Array = env.mocap_low
        self.mocap_high: Array = env.mocap_high
        self.hand_init: Array = np.asarray(env.hand_init_pos, dtype=np.float64)
        self.fingerprint = fingerprint(model)


@cache
def stock(index: int) -> Stock:
    """The stock facts of the task of that index, read once."""
    return Stock(index)
