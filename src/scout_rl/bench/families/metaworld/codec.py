"""Meta-World states as named arrays, and the way from there into an ``MjData`` and the stock environment.

One state is a dict of the arrays below; a batch has the same leading axes on each. States of different tasks have
equal shapes, so that one batch holds both tasks of a conflict.

- MuJoCo's integration state by name: ``time``, ``qpos`` [16], ``qvel`` [15], ``qacc_warmstart`` [15], ``ctrl`` [2]
  (what holds a grasp), ``mocap_pos`` [3] (where the hand is drawn to; it integrates the actions) and ``mocap_quat``
  [4]. Applied forces are left out: no Meta-World task applies any;
- ``task``: the index into ``TASKS``; ``goal`` [3], ``shelf`` [3] (its position in the model; zero without one) and
  ``object_start`` [3] are the context's, as the stock environment holds them;
- ``step_count``;
- ``mujoco_version`` [3] and ``model_fingerprint`` [16]: a state is exact within one version and one model only.

The stock step ends in ``mj_forward``, so derived quantities agree with qpos and are no part of a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock
from scout_rl.bench.families.mujoco_batch import VERSION

# In the order of the bits of mjtState.
_PHYSICS: dict[str, tuple[int, ...]] = {
    "time": (),
    "qpos": (16,),
    "qvel": (15,),
    "qacc_warmstart": (15,),
    "ctrl": (2,),
    "mocap_pos": (3,),
    "mocap_quat": (4,),
}
_CONTEXT: dict[str, tuple[int, ...]] = {"goal": (3,), "shelf": (3,), "object_start": (3,)}
_IDENTITY: dict[str, tuple[int, ...]] = {"mujoco_version": (3,), "model_fingerprint": (16,)}
SHAPES: dict[str, tuple[int, ...]] = {**_PHYSICS, **_CONTEXT, **_IDENTITY, "task": (), "step_count": ()}
"""The arrays of one state."""

_state = mujoco.mjtState
BITS = int(
    _state.mjSTATE_TIME
    | _state.mjSTATE_QPOS
    | _state.mjSTATE_QVEL
    | _state.mjSTATE_WARMSTART
    | _state.mjSTATE_CTRL
    | _state.mjSTATE_MOCAP_POS
    | _state.mjSTATE_MOCAP_QUAT
)
"""What ``mj_getState`` and ``mj_setState`` are asked for."""
_SIZES = [int(np.prod(shape)) for shape in _PHYSICS.values()]
_PLACES = dict(zip(_PHYSICS, (slice(a, b) for a, b in pairwise(accumulate(_SIZES, initial=0))), strict=True))
SIZE = sum(_SIZES)
WARMSTART = _PLACES["qacc_warmstart"]
CHUNK = 64
"""States worked on at once where a whole bank is: an ``MjData`` in use takes 1 MB."""


def pack(states: Mapping[str, Array]) -> NDArray[np.float64]:
    """MuJoCo's part of checked states as the vectors [n, SIZE] that ``mj_setState`` takes."""
    n = len(states["task"])
    return np.concatenate([np.asarray(states[name], dtype=np.float64).reshape(n, -1) for name in _PHYSICS], axis=1)


def unpack(vectors: NDArray[np.float64]) -> States:
    """The inverse of ``pack``."""
    return {name: vectors[:, _PLACES[name]].reshape(len(vectors), *shape).copy() for name, shape in _PHYSICS.items()}


def chunks(states: Mapping[str, Array]) -> Iterator[States]:
    """States [n, ...] in parts of at most ``CHUNK``."""
    for begin in range(0, len(states["task"]), CHUNK):
        yield {name: np.asarray(array)[begin : begin + CHUNK] for name, array in states.items()}


def joined(parts: Iterable[States]) -> States:
    """The inverse of ``chunks``."""
    found = list(parts)
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def identity(task: NDArray[np.int32]) -> States:
    """The arrays that tie states of these tasks to this version and these models."""
    return {
        "mujoco_version": np.tile(VERSION, (len(task), 1)),
        "model_fingerprint": np.stack([stock(int(t)).fingerprint for t in task]),
    }


def check(states: Mapping[str, Array]) -> int:
    """How many states these are; a ``ValueError`` of one sentence where they cannot be restored here."""
    missing = [name for name in SHAPES if name not in states]
    if missing:
        raise ValueError(f"the state lacks the arrays {', '.join(missing)}.")
    task = np.asarray(states["task"])
    n = len(task) if task.ndim else 0
    if n == 0:
        raise ValueError(f"states come as arrays with a leading axis; 'task' has shape {task.shape}.")
    for name, shape in SHAPES.items():
        found = np.shape(states[name])
        if found != (n, *shape):
            raise ValueError(f"array {name!r} of {n} states has shape {found}, and not {(n, *shape)}.")
    version = np.asarray(states["mujoco_version"])
    if not (version == VERSION).all():
        theirs = ".".join(map(str, version[(version != VERSION).any(axis=1)][0]))
        raise ValueError(
            f"this state was written with MuJoCo {theirs}, and MuJoCo {mujoco.__version__} is installed: "
            f"states are exact within one version only, so build the ladder again."
        )
    unknown = task[(task < 0) | (task >= len(TASKS))]
    if len(unknown):
        raise ValueError(f"a state's task is {int(unknown[0])}, and there are {len(TASKS)} tasks.")
    if not (np.asarray(states["model_fingerprint"]) == identity(task)["model_fingerprint"]).all():
        raise ValueError("this state belongs to another MuJoCo model than the one that is simulated.")
    return n


def restore_stock(env: Any, state: Mapping[str, Array]) -> Array:
    """Put a stock environment of the state's task, reset at least once, into a state; returns its observation.

    As after a stock reset, the previous frame of the observation is the current one.
    """
    check({name: np.asarray(array)[None] for name, array in state.items()})
    base = env.unwrapped
    index = int(state["task"])
    if not _is(base, index):
        raise ValueError(f"a state of {TASKS[index].name} cannot be restored in a {type(base).__name__}.")
    if stock(index).shelf is not None:
        base.model.body("shelf").pos = state["shelf"]
    else:
        base.model.site("goal").pos = state["goal"]
    base._target_pos = np.array(state["goal"])
    base.obj_init_pos = np.array(state["object_start"])
    base.curr_path_length = int(state["step_count"])
    vector = pack({name: np.asarray(array)[None] for name, array in state.items()})[0]
    mujoco.mj_setState(base.model, base.data, vector, BITS)
    mujoco.mj_forward(base.model, base.data)
    base.data.qacc_warmstart[:] = vector[WARMSTART]  # mj_forward overwrote it
    base._prev_obs = base._get_curr_obs_combined_no_goal()
    return np.asarray(base._get_obs())


def read_stock(env: Any) -> States:
    """The state of a stock environment."""
    base = env.unwrapped
    index = next(i for i in range(len(TASKS)) if _is(base, i))
    vector = np.empty(SIZE)
    mujoco.mj_getState(base.model, base.data, vector, BITS)
    task = np.array([index], dtype=np.int32)
    shelf = stock(index).shelf
    arrays = {
        **unpack(vector[None]),
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
