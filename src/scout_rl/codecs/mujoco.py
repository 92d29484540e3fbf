"""Codec of any Gymnasium environment that simulates with MuJoCo, whatever its class.

The state is MuJoCo's integration state, the parts of the model that environments change (goal sites, a shelf, masses
under domain randomisation), and the attributes of the environment object with its random generators. ``mj_step``
leaves derived quantities (``xpos``) one substep behind ``qpos``. A restore computes them anew, so the first observation
may differ from the uninterrupted one in the last digits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, Start, State
from scout_rl.codecs.kinds import is_env
from scout_rl.codecs.mujoco_state import MODEL_FIELDS, OPTION_FIELDS, STATE_FIELDS, model_identity
from scout_rl.codecs.object_codec import ObjectCodec
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal


class MujocoCodec(ObjectCodec):
    """States of MuJoCo environments; ``observe(base_env)`` returns the observation if there is no ``_get_obs``."""

    key = "mujoco"
    libraries: tuple[str, ...] = ("mujoco",)
    goal_attribute: str | None = None
    exact = False
    counters: tuple[str, ...] = ()
    """Attributes that count the episode's steps and restart at 0."""
    skipped: tuple[str, ...] = ("width", "height", "_model_names", "maze")
    """Attributes that are constants of the environment, or computed on restore."""
    place = ("qpos", "mocap_pos")
    """The arrays with positions: neighbouring levels should differ in them."""

    def __init__(self, observe: Callable[[Env], Any] | None = None) -> None:
        self._observe = observe

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the environment, or one that it holds, has an ``MjData``."""
        return bool(simulations(env.unwrapped))

    def get_state(self, env: Env) -> State:
        """Data, model parts and attributes."""
        base = env.unwrapped
        arrays: dict[str, Array] = {}
        for prefix, model, data in _numbered(base):
            arrays[f"{prefix}model_identity"] = np.frombuffer(model_identity(model), dtype=np.uint8)
            for name, holder, field in _fields(model, data):
                arrays[prefix + name] = np.array(getattr(holder, field))
        return self._state(self._capture(base), arrays)

    def check(self, base: Env, state: State) -> None:
        """Refuse a state of another model."""
        for prefix, model, _ in _numbered(base):
            identity = state.arrays.get(f"{prefix}model_identity")
            if identity is None or identity.tobytes() != model_identity(model):
                raise Refusal(f"this state belongs to another MuJoCo model than that of {type(base).__name__}.")

    def restore(self, base: Env, state: State, generators: bool) -> Start:
        """Put attributes and simulations back; returns the observation and info."""
        self._restore_attributes(base, state, generators)
        for prefix, model, data in _numbered(base):
            _restore_simulation(model, data, state, prefix)
        self.settle_attributes(base)
        observation = self.observation(base)
        info = self.info(base, observation)
        # Observing may draw noise or remember a frame, so the attributes are restored again.
        self._restore_attributes(base, state, generators)
        self.settle_attributes(base)
        return observation, info

    def goal(self, state: State) -> Array | None:
        """The goal in a state; None if this family has no goal attribute."""
        value, arrays = state.attributes
        node = dict(value["attributes"]).get(self.goal_attribute)
        return arrays.get(node["id"]) if isinstance(node, dict) else None  # its own array, or the same as another's

    def left_out(self, env: Env) -> list[str]:
        """Attributes that a state does not hold, except constants and views of the simulator."""
        simulator = ("mujoco._structs", "gymnasium.envs.mujoco.mujoco_rendering", "PyCapsule")
        return [name for name in super().left_out(env) if not any(s in name for s in simulator)]

    def settle_attributes(self, base: Env) -> None:
        """Compute attributes from the restored simulation, for families that have such."""

    def observation(self, base: Env) -> Any:
        """The observation of the current state."""
        if self._observe is not None:
            return self._observe(base)
        observe = getattr(base, "_get_obs", None)
        if observe is None:
            raise Refusal(
                f"{type(base).__name__} has no _get_obs: say how it observes, "
                f"{type(self).__name__}(observe=lambda env: ...)."
            )
        inner = held_env(base)
        if inner is not None and _takes_an_argument(observe):
            return observe(_only_observation(inner._get_obs()))
        return _only_observation(observe())

    def info(self, base: Env, observation: Any) -> dict[str, Any]:
        """The info of the current state, as reset returns it."""
        get = getattr(base, "_get_reset_info", None)
        return dict(get()) if get is not None else {}

    def _capture(self, base: Env) -> Capture:
        return Capture(base, skip=self.skipped, replace=dict.fromkeys(self.counters, 0))


def simulations(base: Env) -> list[tuple[Any, Any]]:
    """The distinct (model, data) pairs of an environment and of the objects it holds."""
    holders = [base, *(v for v in vars(base).values() if hasattr(v, "__dict__") and not isinstance(v, type))]
    pairs: dict[int, tuple[Any, Any]] = {}
    for holder in holders:
        values = list(vars(holder).values())
        models = [v for v in values if isinstance(v, mujoco.MjModel)]
        datas = [v for v in values if isinstance(v, mujoco.MjData)]
        for model, data in zip(models, datas, strict=False):
            pairs.setdefault(id(data), (model, data))
    return list(pairs.values())


def held_env(base: Env) -> Env | None:
    """The environment that this one holds, if any, such as the ant of an ant maze."""
    return next((v for v in vars(base).values() if is_env(v)), None)


def _numbered(base: Env) -> list[tuple[str, Any, Any]]:
    """The simulations with the prefix of their arrays; the first has none."""
    return [(f"sim{i}/" if i else "", model, data) for i, (model, data) in enumerate(simulations(base))]


def _fields(model: Any, data: Any) -> list[tuple[str, Any, str]]:
    """The arrays of a simulation: their name in a state, and the object and attribute that hold them."""
    return [
        *((name, data, name) for name in STATE_FIELDS),
        *((f"model/{name}", model, name) for name in MODEL_FIELDS),
        *((f"model/opt/{name}", model.opt, name) for name in OPTION_FIELDS),
    ]


def _restore_simulation(model: Any, data: Any, state: State, prefix: str) -> None:
    mujoco.mj_resetData(model, data)  # else contact forces of the last episode would remain
    for name, holder, field in _fields(model, data):
        value = state.arrays[prefix + name]
        if value.ndim:
            getattr(holder, field)[:] = value
        else:
            setattr(holder, field, float(value))
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)  # cfrc_ext, which locomotion tasks observe
    data.qacc_warmstart[:] = state.arrays[f"{prefix}qacc_warmstart"]  # mj_forward overwrote it


def _takes_an_argument(method: Any) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _only_observation(result: Any) -> Any:
    """The observation; some environments return ``(observation, info)`` from ``_get_obs``."""
    return result[0] if isinstance(result, tuple) else result
