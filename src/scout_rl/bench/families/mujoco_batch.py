"""What the MuJoCo families share: n environments of one model as one batch, with a full-state codec.

One ``MjData`` per environment, stepped by persistent threads (``mj_step`` releases the GIL). A state is a dict of named
arrays with a leading axis of n:

- MuJoCo's integration state by name (``STATE_FIELDS``: time, qpos, qvel, act, qacc_warmstart, ctrl, qfrc_applied, ...);
- the ``derived`` arrays that the family names. ``mj_step`` leaves quantities such as xpos one substep behind qpos. A
  stock environment reads these older values, so a restored episode must have them too;
- ``mujoco_version`` and ``model_fingerprint``: a state is exact within one version and one model only.

A *start* is a state whose derived arrays agree with qpos (``as_starts``), as after any reset of a stock environment.

How a family uses it::

    pool = BatchPool(model, derived=("xpos", "xquat"))
    batch = pool.lend(holder, n)      # returns to the pool once the holder (the handle) is gone
    batch.set_states(states)          # named arrays [n, ...]; refuses states of another model or version
    batch.write("ctrl", rows)         # [n, nu] into each MjData
    batch.step(n_substeps)
    batch.read("qpos")                # [n, nq], a copy
    batch.each(lambda i: ...)         # anything else with batch.data[i], on all threads
    batch.get_states()
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.worker_threads import Work, WorkerThreads
from scout_rl.bench.hardware import n_usable_cores
from scout_rl.codecs.mujoco_state import Layout, model_identity
from scout_rl.files.refusal import Refusal

Array = NDArray[Any]

MOST_IDLE = 256
"""Idle environments that a pool keeps; each takes about a megabyte."""
BOX_SLACK = 1e-4
"""Metres that a mesh's box is larger than the mesh: far more than rounding and the solver's tolerance."""
VERSION = np.array([int(part) for part in mujoco.__version__.split(".")[:3]], dtype=np.int32)


class BatchLayout(Layout):
    """The layout of the integration state, the derived arrays, and the version and model that a state belongs to."""

    def __init__(self, model: Any, derived: Sequence[str] = (), data: Any = None) -> None:
        data = mujoco.MjData(model) if data is None else data
        super().__init__(model, data)
        self.derived = {name: np.asarray(getattr(data, name)).shape for name in derived}
        self.fingerprint = fingerprint(model)
        self.shapes |= self.derived | {"mujoco_version": VERSION.shape, "model_fingerprint": self.fingerprint.shape}
        """The shape of every array of one state."""

    def identity(self, n: int) -> States:
        """The version and model arrays of n states."""
        return identity([self.fingerprint] * n)

    def check(self, states: Mapping[str, Array]) -> int:
        """How many states these are; a ``ValueError`` if they cannot be restored here."""
        n = check_arrays(states, self.shapes, "mujoco_version")
        check_origin(states, self.fingerprint)
        return n


def fingerprint(model: Any) -> NDArray[np.uint8]:
    """The bytes that tie a state to its model."""
    return np.frombuffer(model_identity(model)[:16], dtype=np.uint8)


def identity(fingerprints: Sequence[NDArray[np.uint8]]) -> States:
    """The arrays that tie states to this version of MuJoCo and to models."""
    return {
        "mujoco_version": np.tile(VERSION, (len(fingerprints), 1)),
        "model_fingerprint": np.array(fingerprints, dtype=np.uint8).reshape(len(fingerprints), -1),
    }


def check_arrays(states: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], counted: str) -> int:
    """How many states these are, by the array ``counted``; a ``ValueError`` if an array is missing or misshapen."""
    missing = [name for name in shapes if name not in states]
    if missing:
        raise Refusal(f"the state lacks the arrays {', '.join(missing)}.")
    count = np.shape(states[counted])
    n = count[0] if count else 0
    for name, shape in shapes.items():
        if np.shape(states[name]) != (n, *shape):
            raise Refusal(f"array {name!r} of {n} states has shape {np.shape(states[name])}, and not {(n, *shape)}.")
    return n


def check_origin(states: Mapping[str, Array], fingerprints: Array) -> None:
    """Refuse states of another version of MuJoCo or of another model."""
    version = np.asarray(states["mujoco_version"])
    if not (version == VERSION).all():
        written = ".".join(map(str, version[(version != VERSION).any(axis=1)][0]))
        raise Refusal(
            f"this state was written with MuJoCo {written}, and MuJoCo {mujoco.__version__} is installed: "
            f"states are exact within one version only, so build the ladder again."
        )
    if not (np.asarray(states["model_fingerprint"]) == fingerprints).all():
        raise Refusal("this state belongs to another MuJoCo model than the one that is simulated.")


def with_box_tests(model: Any) -> Any:
    """A copy of the model in which oriented boxes of meshes are compared first: the same contacts in less time.

    MuJoCo compares such boxes only for bodies of several geoms (its midphase). For two bodies of one geom each it
    compares spheres, which are loose around a mesh, and then the meshes themselves. So a body of one mesh is said to
    have two geoms here. Its collision tree still holds its own geom alone. Elsewhere the model's next geom counts as
    the second: it widens the body's extent in the broad phase, so more pairs reach the box test, never fewer. Fluids
    and flexes would use the count too: models with them are left as they are.
    """
    model = copy.copy(model)
    collides = (model.body_contype | model.body_conaffinity) != 0
    if model.opt.density or model.opt.viscosity or model.nflex or (model.body_bvhadr[collides] < 0).any():
        return model
    kind = mujoco.mjtGeom
    for body in np.flatnonzero(collides & (model.body_geomnum == 1)):
        geom = int(model.body_geomadr[body])
        following = model.geom_type[geom + 1 : geom + 2].tolist()
        if model.geom_type[geom] == kind.mjGEOM_MESH and following and following[0] != kind.mjGEOM_PLANE:
            model.body_geomnum[body] = 2
            model.geom_aabb[geom, 3:] += BOX_SLACK
    return model


class MujocoBatch:
    """n environments of one model."""

    def __init__(self, model: Any, n: int, *, derived: Sequence[str] = (), n_threads: int | None = None) -> None:
        self.n = n
        self.layout = BatchLayout(model, derived)
        self.model = model
        self.data: list[Any] = [mujoco.MjData(model) for _ in range(n)]
        self.threads = WorkerThreads(n_usable_cores() if n_threads is None else n_threads)
        self.awake: Sequence[int] = range(n)
        """The environments that are stepped."""
        self._views: dict[str, list[Array]] = {}

    def each(self, work: Work) -> None:
        """Call ``work(i)`` for every environment, on all threads."""
        self.threads.each(work, self.n)

    def step(self, n_substeps: int) -> None:
        """``mj_step`` every environment that is awake."""
        model, step = self.model, mujoco.mj_step
        data = [self.data[i] for i in self.awake]

        def step_one(i: int) -> None:
            step(model, data[i], n_substeps)

        self.threads.each(step_one, len(data))

    def views(self, name: str) -> list[Array]:
        """The array of that name in each ``MjData``, as views that stay valid."""
        if name not in self._views:
            self._views[name] = [getattr(data, name) for data in self.data]
        return self._views[name]

    def rows(self, *names: str) -> NDArray[np.float64]:
        """Vectors of those names side by side [n, ...], such as ``rows("qpos", "qvel")``, in one fast copy."""
        key = " ".join(names)
        if key not in self._views:
            self._views[key] = [view for together in zip(*map(self.views, names), strict=True) for view in together]
        return np.concatenate(self._views[key]).reshape(self.n, -1)

    def read(self, name: str) -> Array:
        """The arrays of that name, stacked [n, ...]: a copy."""
        return np.array(self.views(name))

    def write(self, name: str, rows: Array) -> None:
        """Copy ``rows`` [n, ...] into the arrays of that name."""
        for view, row in zip(self.views(name), rows, strict=True):
            view[...] = row

    def get_states(self) -> States:
        """Named arrays [n, ...] from which ``set_states`` continues bit for bit."""
        return (
            self.layout.unpack(np.array([self.layout.read(self.model, data) for data in self.data]))
            | {name: self.read(name) for name in self.layout.derived}
            | self.layout.identity(self.n)
        )

    def set_states(self, states: Mapping[str, Array], *, derived: bool = True) -> None:
        """Restore named arrays [n, ...]; other arrays in ``states`` belong to the family.

        Without ``derived``, the derived arrays are computed from qpos.
        """
        if self.layout.check(states) != self.n:
            raise Refusal(f"{len(states['qpos'])} states cannot be restored in a batch of {self.n}.")
        packed = self.layout.pack(states, self.n)
        stale = [(self.views(name), np.asarray(states[name])) for name in self.layout.derived] if derived else []

        def restore(i: int) -> None:
            self.layout.restore(self.model, self.data[i], packed[i])
            for targets, rows in stale:
                targets[i][...] = rows[i]

        self.each(restore)


class BatchPool:
    """Batches of one model by size. They are used again, since an ``MjData`` is slow to make."""

    def __init__(self, model: Any, *, derived: Sequence[str] = (), n_threads: int | None = None) -> None:
        self.stock_model, self.model = model, with_box_tests(model)
        self.layout = BatchLayout(model, derived)
        self._n_threads = n_threads
        self._idle: dict[int, list[MujocoBatch]] = {}

    def lend(self, holder: object, n: int) -> MujocoBatch:
        """A batch of n environments in an arbitrary state: restore before use.

        It returns to the pool when ``holder``, the simulator's handle, is garbage-collected.
        """
        idle = self._idle.get(n)
        derived = tuple(self.layout.derived)
        batch = idle.pop() if idle else MujocoBatch(self.model, n, derived=derived, n_threads=self._n_threads)
        batch.awake = range(n)
        weakref.finalize(holder, self._take_back, batch).atexit = False
        return batch

    def _take_back(self, batch: MujocoBatch) -> None:
        """Keep the batch; drop the others where too many environments would be idle."""
        if batch.n + sum(n * len(batches) for n, batches in list(self._idle.items())) > MOST_IDLE:
            self._idle = {}
        self._idle.setdefault(batch.n, []).append(batch)


def read_data(model: Any, data: Any, derived: Sequence[str] = ()) -> States:
    """The state of one ``MjData``, such as a stock environment's: the same arrays as one of a batch."""
    layout = BatchLayout(model, derived, data)
    states = layout.unpack(layout.read(model, data)[None]) | layout.identity(1)
    states |= {name: np.array(getattr(data, name))[None] for name in derived}
    return {name: array[0] for name, array in states.items()}


def restore_data(model: Any, data: Any, state: Mapping[str, Array], derived: Sequence[str] = ()) -> None:
    """Restore one state into a single ``MjData``."""
    layout = BatchLayout(model, derived, data)
    states = {name: np.asarray(array)[None] for name, array in state.items()}
    layout.check(states)
    layout.restore(model, data, layout.pack(states, 1)[0])
    for name in derived:
        getattr(data, name)[...] = state[name]
