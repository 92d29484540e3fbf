"""The state of a MuJoCo simulation: fields of ``MjData`` and ``MjModel``, and their layout as a vector."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from scout_rl.files.archive import Array

# fmt: off
STATE_FIELDS = {
    "time": "TIME", "qpos": "QPOS", "qvel": "QVEL", "act": "ACT", "qacc_warmstart": "WARMSTART", "ctrl": "CTRL",
    "qfrc_applied": "QFRC_APPLIED", "xfrc_applied": "XFRC_APPLIED", "eq_active": "EQ_ACTIVE",
    "mocap_pos": "MOCAP_POS", "mocap_quat": "MOCAP_QUAT", "userdata": "USERDATA", "plugin_state": "PLUGIN",
}
# fmt: on
"""The arrays of mjSTATE_INTEGRATION, with the bit of each; a model has only some of them."""

# fmt: off
MODEL_FIELDS = (
    "body_pos", "body_quat", "geom_pos", "geom_quat", "geom_rgba", "site_pos", "site_quat",
    "site_size", "site_rgba", "eq_data", "body_mass", "body_inertia", "body_subtreemass",
    "body_invweight0", "geom_friction", "dof_damping", "dof_frictionloss", "dof_invweight0",
    "actuator_gainprm", "actuator_biasprm",
)
# fmt: on
"""Fields of the model that environments change: placements, colours, randomised dynamics."""

OPTION_FIELDS = ("gravity", "wind", "timestep", "density", "viscosity")

# fmt: off
IDENTITY_FIELDS = (
    "names", "jnt_type", "body_parentid", "geom_type", "geom_bodyid", "eq_type", "actuator_trntype",
    "geom_size", "jnt_axis", "jnt_range", "actuator_gear",
)
# fmt: on
"""Two models are the same if these are equal (floats in single precision)."""


def model_identity(model: Any) -> bytes:
    """A hash of ``IDENTITY_FIELDS`` and the model's sizes; placements and dynamics are not part of it."""
    digest = hashlib.sha256(repr([model.nq, model.nv, model.nu, model.na, model.nbody, model.nmocap]).encode())
    for name in IDENTITY_FIELDS:
        value = getattr(model, name)
        array = np.frombuffer(value, dtype=np.uint8) if isinstance(value, bytes) else np.asarray(value)
        digest.update(array.astype(np.float32).tobytes() if array.dtype.kind == "f" else array.tobytes())
    return digest.digest()


class Layout:
    """The place of each named array in the vector of ``mj_getState``, in the order of MuJoCo's bits.

    ``fields`` are the integration state, or the part on which a step of the environment depends. ``flat`` gives each
    array one axis: the position of a single mocap body is [3], not [1, 3].
    """

    def __init__(
        self, model: Any, data: Any = None, *, fields: Iterable[str] = STATE_FIELDS, flat: bool = False
    ) -> None:
        every = {name: int(getattr(mujoco.mjtState, f"mjSTATE_{bit}")) for name, bit in STATE_FIELDS.items()}
        if sum(every.values()) != int(mujoco.mjtState.mjSTATE_INTEGRATION):
            raise RuntimeError(f"MuJoCo {mujoco.__version__} has a part of the state that has no name here.")
        data = mujoco.MjData(model) if data is None else data
        self.bits = sum(every[name] for name in fields)
        self.parts: dict[str, tuple[slice, tuple[int, ...], Any]] = {}
        """Place in the vector, shape and type of every array of the model."""
        self.size = 0
        for name in sorted(fields, key=every.__getitem__):
            size = mujoco.mj_stateSize(model, every[name])
            if size:
                like = np.asarray(getattr(data, name))
                shape = (size,) if flat and like.ndim else like.shape
                self.parts[name] = (slice(self.size, self.size + size), shape, like.dtype)
            self.size += size
        self.shapes = {name: shape for name, (_, shape, _) in self.parts.items()}

    def pack(self, states: Mapping[str, Array], n: int) -> NDArray[np.float64]:
        """The vectors [n, size] of n checked states, named arrays [n, ...]."""
        packed = np.empty((n, self.size))
        for name, (place, _, _) in self.parts.items():
            packed[:, place] = np.asarray(states[name]).reshape(n, -1)
        return packed

    def unpack(self, packed: NDArray[np.float64]) -> dict[str, Array]:
        """The inverse of ``pack``."""
        n = len(packed)
        return {
            name: packed[:, place].reshape(n, *shape).astype(dtype)
            for name, (place, shape, dtype) in self.parts.items()
        }

    def read(self, model: Any, data: Any) -> NDArray[np.float64]:
        """The vector [size] of one simulation."""
        vector = np.empty(self.size)
        mujoco.mj_getState(model, data, vector, self.bits)
        return vector

    def restore(self, model: Any, data: Any, vector: NDArray[np.float64]) -> None:
        """Put a vector back into a simulation, and compute the derived quantities."""
        mujoco.mj_setState(model, data, vector, self.bits)
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = vector[self.parts["qacc_warmstart"][0]]  # mj_forward overwrote it
