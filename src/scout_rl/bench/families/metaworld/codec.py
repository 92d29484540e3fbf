"""Meta-World states as named arrays, to and from an ``MjData`` and the stock environment.

One state is a dict of the arrays below; a batch has equal leading axes on each. States of different tasks have equal
shapes, so that one batch can hold several tasks.

- MuJoCo's integration state by name: ``time``, ``qpos`` [16], ``qvel`` [15], ``qacc_warmstart`` [15], ``ctrl`` [2]
  (they hold a grasp), ``mocap_pos`` [3] (where the hand is drawn to; it integrates the actions) and ``mocap_quat``
  [4]. Applied forces are left out, since no Meta-World task applies any;
- ``task``: the index into ``TASKS``; ``goal`` [3], ``shelf`` [3] (its position in the model; zero without one) and
  ``object_start`` [3] of the context, as in the stock environment;
- ``step_count``;
- ``mujoco_version`` [3] and ``model_fingerprint`` [16]: a state is exact within one version and one model only.

The stock step ends in ``mj_forward``, so derived quantities agree with qpos and are not part of a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import mujoco_batch
from scout_rl.bench.families.family import States
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock
from scout_rl.bench.families.mujoco_batch import check_arrays, check_origin
from scout_rl.codecs.mujoco_state import Layout
from scout_rl.files.refusal import Refusal

FIELDS = ("time", "qpos", "qvel", "qacc_warmstart", "ctrl", "mocap_pos", "mocap_quat")
"""The fields of MuJoCo's state that a step depends on."""
_OWN: dict[str, tuple[int, ...]] = {"goal": (3,), "shelf": (3,), "object_start": (3,), "task": (), "step_count": ()}
_IDENTITY: dict[str, tuple[int, ...]] = {"mujoco_version": (3,), "model_fingerprint": (16,)}
CHUNK = 64
"""States of a bank worked on at once: an ``MjData`` in use takes 1 MB."""


@cache
def layout() -> Layout:
    """The layout of MuJoCo's part of a state; the same for all tasks."""
    return Layout(stock(0).model, fields=FIELDS, flat=True)


def chunks(states: Mapping[str, Array]) -> Iterator[States]:
    """States [n, ...] in parts of at most ``CHUNK``."""
    for begin in range(0, len(states["task"]), CHUNK):
        yield {name: np.asarray(array)[begin : begin + CHUNK] for name, array in states.items()}


def joined(parts: Iterable[States]) -> States:
    """The inverse of ``chunks``."""
    parts = list(parts)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def identity(task: NDArray[np.int32]) -> States:
    """The arrays that tie states to this version and to the models of these tasks."""
    return mujoco_batch.identity([stock(int(t)).fingerprint for t in task])


def check(states: Mapping[str, Array]) -> int:
    """How many states these are; a ``ValueError`` if they cannot be restored here."""
    task = np.asarray(states.get("task", [0]))
    if not task.ndim or not len(task):
        raise Refusal(f"states come as arrays with a leading axis; 'task' has shape {task.shape}.")
    n = check_arrays(states, layout().shapes | _OWN | _IDENTITY, "task")
    unknown = task[(task < 0) | (task >= len(TASKS))]
    if len(unknown):
        raise Refusal(f"a state's task is {int(unknown[0])}, and there are {len(TASKS)} tasks.")
    check_origin(states, identity(task)["model_fingerprint"])
    return n


def restore_stock(env: Any, state: Mapping[str, Array]) -> Array:
    """Restore a state in a stock environment of its task that was reset once; returns the observation.

    As after a stock reset, the previous frame of the observation is the current one.
    """
    states = {name: np.asarray(array)[None] for name, array in state.items()}
    check(states)
    base = env.unwrapped
    index = int(state["task"])
    if not _is(base, index):
        raise Refusal(f"a state of {TASKS[index].name} cannot be restored in a {type(base).__name__}.")
    if stock(index).shelf is not None:
        base.model.body("shelf").pos = state["shelf"]
    else:
        base.model.site("goal").pos = state["goal"]
    base._target_pos = np.array(state["goal"])
    base.obj_init_pos = np.array(state["object_start"])
    base.curr_path_length = int(state["step_count"])
    layout().restore(base.model, base.data, layout().pack(states, 1)[0])
    base._prev_obs = base._get_curr_obs_combined_no_goal()
    return np.asarray(base._get_obs())


def read_stock(env: Any) -> States:
    """The state of a stock environment."""
    base = env.unwrapped
    index = next(i for i in range(len(TASKS)) if _is(base, i))
    task = np.array([index], dtype=np.int32)
    shelf = stock(index).shelf
    arrays = {
        **layout().unpack(layout().read(base.model, base.data)[None]),
        **identity(task),
        "goal": np.array(base._target_pos, dtype=np.float64)[None],
        "shelf": (np.zeros(3) if shelf is None else np.array(base.model.body_pos[shelf]))[None],
        "object_start": np.array(base.obj_init_pos, dtype=np.float64)[None],
        "task": task,
        "step_count": np.array([base.curr_path_length], dtype=np.int32),
    }
    return {name: array[0] for name, array in arrays.items()}


def _is(base: Any, index: int) -> bool:
    return type(base) is type(stock(index).env)
