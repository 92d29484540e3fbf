"""What an environment's attributes are: how it is shown, code, an environment that it holds, an object of its own."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

# fmt: off
SKIPPED = frozenset((
    "spec", "metadata", "render_mode", "action_space", "observation_space", "reset", "step",
    "_ezpickle_args", "_ezpickle_kwargs", "window", "clock", "screen", "surf", "viewer",
    "render_size", "screen_size", "screen_width", "screen_height", "isopen", "mujoco_renderer",
    "fullpath", "tmp_xml_file_path", "camera_id", "camera_name",
))
# fmt: on
"""How an environment is shown and made: no part of its state, and never copied from one to another."""

CONSTANT_TYPES: tuple[type, ...] = (
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    functools.partial,
    type,
    np.dtype,
    np.ufunc,
)


def own_packages(env: Any) -> frozenset[str]:
    """The top-level packages that the environment's class comes from, infrastructure left out."""
    infrastructure = {"builtins", "abc", "typing", "gymnasium", "gym", "numpy", "mujoco"}
    return frozenset(cls.__module__.split(".")[0] for cls in type(env).__mro__) - infrastructure


def is_env(value: Any) -> bool:
    """Whether this is an environment (held by another one): restored in place, never made anew."""
    return any(c.__module__ == "gymnasium.core" and c.__name__ == "Env" for c in type(value).__mro__)


def is_constant(value: Any) -> bool:
    """Whether a value is code or a space: a restore leaves the live one."""
    if isinstance(value, CONSTANT_TYPES):
        return True
    return any(c.__module__.startswith("gymnasium.spaces") for c in type(value).__mro__)


def class_name(cls: type) -> str:
    """Module and qualified name, as states carry them."""
    return f"{cls.__module__}:{cls.__qualname__}"


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots included."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found
