"""What the MuJoCo families share: n environments of one model as one batch, with a full-state codec.

One ``MjData`` an environment, stepped by a persistent thread pool (``mj_step`` releases the GIL). A state is a dict of
named arrays with a leading axis of n:

- MuJoCo's integration state by name (``STATE_FIELDS``: time, qpos, qvel, act, qacc_warmstart, ctrl, qfrc_applied, ...);
- the ``derived`` arrays that the family names. ``mj_step`` leaves quantities such as xpos one substep behind qpos, and
  a stock environment that reads them sees the older ones: an episode that is cut and continued has to see them too;
- ``mujoco_version`` and ``model_fingerprint``: a state is exact within one version and one model only.

A *start* is a state whose derived arrays agree with qpos (``as_starts``), as after any reset of a stock environment.

How a family uses it::

    pool = BatchPool(model, derived=("xpos", "xquat"))
    batch = pool.lend(holder, n)      # goes back to the pool by itself once the holder (the handle) is gone
    batch.set_states(states)          # named arrays [n, ...]; refuses another model's or version's
    batch.write("ctrl", rows)         # [n, nu] into each MjData
    batch.step(n_substeps)
    batch.read("qpos")                # [n, nq], a copy
    batch.each(lambda i: ...)         # anything else, shared out over the threads; batch.data[i]
    batch.get_states()
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.worker_threads import Work, worker_threads
from scout_rl.bench.hardware import n_usable_cores
from scout_rl.codecs.mujoco_state import Layout, model_identity

Array = NDArray[Any]

MOST_IDLE = 256
"""Idle environments that a pool keeps; one takes about a megabyte."""
VERSION = np.array([int(part) for part in mujoco.__version__.split(".")[:3]], dtype=np.int32)


class BatchLayout(Layout):
    """The layout of the whole integration state, with the derived arrays and those that say where a state belongs."""

    def __init__(self, model: Any, derived: Sequence[str] = (), data: Any = None) -> None:
        data = mujoco.MjData(model) if data is None else data
        super().__init__(model, data)
        self.derived = {name: np.asarray(getattr(data, name)).shape for name in derived}
        self.fingerprint = fingerprint(model)
        self.shapes |= self.derived | {"mujoco_version": VERSION.shape, "model_fingerprint": self.fingerprint.shape}
        """The shape of every array of one state."""

    def identity(self, n: int) -> States:
        """The two arrays of n states that say where they belong."""
        return identity([self.fingerprint] * n)

    def check(self, states: Mapping[str, Array]) -> int:
        """How many states these are; a ``ValueError`` of one sentence where they cannot be restored here."""
        n = check_arrays(states, self.shapes, "mujoco_version")
        check_origin(states, self.fingerprint)
        return n


def fingerprint(model: Any) -> NDArray[np.uint8]:
    """What a state remembers of the model that it belongs to."""
    return np.frombuffer(model_identity(model)[:16], dtype=np.uint8)


def identity(fingerprints: Sequence[NDArray[np.uint8]]) -> States:
    """The arrays that tie states to this version of MuJoCo and to the models of these fingerprints."""
    return {
        "mujoco_version": np.tile(VERSION, (len(fingerprints), 1)),
        "model_fingerprint": np.array(fingerprints, dtype=np.uint8).reshape(len(fingerprints), -1),
    }


def check_arrays(states: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], counted: str) -> int:
    """How many states these are, by the array ``counted``; a ``ValueError`` where one is missing or misshapen."""
    missing = [name for name in shapes if name not in states]
    if missing:
        raise ValueError(f"the state lacks the arrays {', '.join(missing)}.")
    count = np.shape(states[counted])
    n = count[0] if count else 0
    for name, shape in shapes.items():
        if np.shape(states[name]) != (n, *shape):
            raise ValueError(f"array {name!r} of {n} states has shape {np.shape(states[name])}, and not {(n, *shape)}.")
    return n


def check_origin(states: Mapping[str, Array], fingerprints: Array) -> None:
    """Refuse states of another version of MuJoCo or of other models than these."""
    version = np.asarray(states["mujoco_version"])
    if not (version == VERSION).all():
        theirs = ".".join(map(str, version[(version != VERSION).any(axis=1)][0]))
        raise ValueError(
            f"this state was written with MuJoCo {theirs}, and MuJoCo {mujoco.__version__} is installed: "
            f"states are exact within one version only, so build the ladder again."
        )
    if not (np.asarray(states["model_fingerprint"]) == fingerprints).all():
        raise ValueError("this state belongs to another MuJoCo model than the one that is simulated.")


class MujocoBatch:
    """n environments of one model."""

    def __init__(self, model: Any, n: int, *, derived: Sequence[str] = (), n_threads: int | None = None) -> None:
        self.n = n
        self.layout = BatchLayout(model, derived)
        self.model = model
        self.data: list[Any] = [mujoco.MjData(model) for _ in range(n)]
        self.threads = worker_threads(n_usable_cores() if n_threads is None else n_threads)
        self._views: dict[str, list[Array]] = {}

    def each(self, work: Work) -> None:
        """Call ``work(i)`` for every environment, shared out over the threads."""
        self.threads.each(work, self.n)

    def step(self, n_substeps: int) -> None:
        """``mj_step`` every environment."""
        model, data, step = self.model, self.data, mujoco.mj_step

        def one(i: int) -> None:
            step(model, data[i], n_substeps)

        self.each(one)

    def views(self, name: str) -> list[Array]:
        """The array of that name in each ``MjData``, as views that stay valid: reading and writing go through."""
        if name not in self._views:
            self._views[name] = [getattr(data, name) for data in self.data]
        return self._views[name]

    def rows(self, *names: str) -> NDArray[np.float64]:
        """Vectors of those names side by side [n, ...], such as ``rows("qpos", "qvel")``: one copy, the fastest."""
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
        """Restore named arrays [n, ...]; further arrays in ``states`` are the family's own.

        Without ``derived``, the derived arrays are computed from qpos, whatever the states say.
        """
        if self.layout.check(states) != self.n:
            raise ValueError(f"{len(states['qpos'])} states cannot be restored in a batch of {self.n}.")
        packed = self.layout.pack(states, self.n)
        stale = [(self.views(name), np.asarray(states[name])) for name in self.layout.derived] if derived else []

        def restore(i: int) -> None:
            self.layout.restore(self.model, self.data[i], packed[i])
            for targets, rows in stale:
                targets[i][...] = rows[i]

        self.each(restore)

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """The same states with derived arrays that agree with qpos; the batch is left in them."""
        self.set_states({**{name: self.read(name) for name in self.layout.derived}, **states}, derived=False)
        return self.get_states()


class BatchPool:
    """Batches of one model by their size, used again once nobody holds them: an ``MjData`` is dear to make."""

    def __init__(self, model: Any, *, derived: Sequence[str] = (), n_threads: int | None = None) -> None:
        self.model = model
        self.layout = BatchLayout(model, derived)
        self._n_threads = n_threads
        self._idle: dict[int, list[MujocoBatch]] = {}

    def lend(self, holder: object, n: int) -> MujocoBatch:
        """A batch of n environments in whatever state it was left: restore before use.

        It comes back by itself when ``holder``, what a simulator gives out as its state, is gone.
        """
        idle = self._idle.get(n)
        derived = tuple(self.layout.derived)
        batch = idle.pop() if idle else MujocoBatch(self.model, n, derived=derived, n_threads=self._n_threads)
        weakref.finalize(holder, self._take_back, batch).atexit = False
        return batch

    def _take_back(self, batch: MujocoBatch) -> None:
        """Keep the batch; where that would be too many idle environments, drop the others."""
        if batch.n + sum(n * len(batches) for n, batches in list(self._idle.items())) > MOST_IDLE:
            self._idle = {}
        self._idle.setdefault(batch.n, []).append(batch)


def read_data(model: Any, data: Any) -> States:
    """The integration state of one ``MjData`` by name."""
    layout = Layout(model, data)
    return {name: array[0] for name, array in layout.unpack(layout.read(model, data)[None]).items()}


def restore_data(model: Any, data: Any, state: Mapping[str, Array]) -> None:
    """Restore one start into an ``MjData`` that is no part of a batch, such as a stock environment's."""
    layout = BatchLayout(model, data=data)
    one = {name: np.asarray(array)[None] for name, array in state.items()}
    layout.check(one)
    layout.restore(model, data, layout.pack(one, 1)[0])
