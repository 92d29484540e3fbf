"""Kinds of attributes of an environment: display settings, code, a held environment, objects of its package."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from scout_rl.files.archive import Array

# fmt: off
SKIPPED = frozenset((
    "spec", "metadata", "render_mode", "action_space", "observation_space", "reset", "step",
    "_ezpickle_args", "_ezpickle_kwargs", "window", "clock", "screen", "surf", "viewer",
    "render_size", "screen_size", "screen_width", "screen_height", "isopen", "mujoco_renderer",
    "fullpath", "tmp_xml_file_path", "camera_id", "camera_name",
))
# fmt: on
"""Attributes about display and construction: not part of the state, never copied."""

BUILT_IN_METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_CONSTANTS = (types.ModuleType, type, np.dtype, np.ufunc)


def own_packages(env: Any) -> frozenset[str]:
    """The top-level packages of the environment's class, without infrastructure."""
    infrastructure = {"builtins", "abc", "typing", "gymnasium", "gym", "numpy", "mujoco"}
    return frozenset(cls.__module__.split(".")[0] for cls in type(env).__mro__) - infrastructure


def descends_from(value: Any, name: str) -> bool:
    """Whether the object's class is, or descends from, the class of this full name."""
    return name in {f"{c.__module__}.{c.__name__}" for c in type(value).__mro__}


def is_env(value: Any) -> bool:
    """Whether this is an environment. One that another holds is restored in place, never made anew."""
    return descends_from(value, "gymnasium.core.Env")


def is_constant(value: Any) -> bool:
    """Whether a restore can leave the live value: a module, a class, a space, or code that holds no data.

    Code that holds the environment itself is constant too: it reads what was restored.
    """
    for part in reachable(value, lambda part: code_parts(part) or []):
        inside_code = part is not value and (isinstance(part, _ATOMS) or is_env(part))
        is_space = any(c.__module__.startswith("gymnasium.spaces") for c in type(part).__mro__)
        if not (isinstance(part, _CONSTANTS) or is_space or inside_code or code_parts(part) is not None):
            return False
    return True


def reachable(value: Any, parts: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """The value and all that it leads to, each object once; ``parts`` says what an object holds."""
    visited: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) not in visited:
            visited.add(id(part))
            yield part
            waiting += parts(part)


def code_parts(value: Any) -> list[Any] | None:
    """What a function, a partial or a built-in method holds; None for any other value."""
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    return [value.__self__] if isinstance(value, BUILT_IN_METHODS) else None


def memory_owner(array: Array) -> tuple[Array, str | None]:
    """The array that owns this one's memory, and the class of another owner (a simulator, a tensor), if any."""
    owner = array
    base: Any = array.base
    while isinstance(base, np.ndarray) or type(base).__module__.startswith("numpy.lib"):  # as_strided's holder
        owner, base = (base if isinstance(base, np.ndarray) else owner), base.base
    if isinstance(base, memoryview):  # as in an array that was pickled
        base = None if base.readonly else base.obj
    plain = base is None or isinstance(base, bytes | bytearray)
    return owner, None if plain else f"{type(base).__module__}.{type(base).__qualname__}"


def class_name(cls: type) -> str:
    """Module and qualified name, as states store them."""
    return f"{cls.__module__}:{cls.__qualname__}"


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object by name, including slots."""
    attributes = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                attributes[name] = getattr(value, name)
    return attributes
