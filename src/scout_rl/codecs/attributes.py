"""The attributes of an environment object as JSON and named arrays.

This is a deep copy into plain data: containers, arrays, random generators, and objects of the environment's
own package, with shared references kept. ``restoring.py`` is the way back.

What cannot be such data (functions, spaces, simulator handles) is *kept*: a restore leaves the live value.
"""

from __future__ import annotations

import collections
import enum
import functools
import random
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from scout_rl.archive import Array

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
_PLAIN = (bool, int, float, str)


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


def _is_foreign_memory(array: Array) -> bool:
    """Whether an array is a window into a simulator's own memory (``env.x = data.body('hand').xpos``)."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base is not None and not isinstance(base, bytes | bytearray | memoryview)


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


class Capture:
    """One pass over the attributes of a root object.

    ``value`` is the JSON part, ``arrays`` the numbers, and ``left_out`` names what could not be captured.
    ``replace`` overrides attributes of the root (time counters, say), ``labels`` names objects that the
    caller stores itself: they become references by that label.
    """

    def __init__(
        self,
        root: Any,
        *,
        packages: Iterable[str],
        skip: Iterable[str] = (),
        replace: dict[str, Any] | None = None,
        labels: dict[int, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.arrays: dict[str, Array] = {}
        self.left_out: list[str] = []
        self._packages = frozenset(packages)
        self._skip = SKIPPED | frozenset(skip)
        self._labels = labels or {}
        self._index = {id(root): 0}
        self._alive: list[Any] = []  # ids are only unique while their objects live
        self._nodes: list[Any] = [None]
        attributes = self._attributes(root, "", {**attributes_of(root), **(replace or {})})
        self._nodes[0] = ["env", class_name(type(root)), attributes]
        extras = {name: self._encode(value, f"{name}") for name, value in (extra or {}).items()}
        self.value = {"nodes": self._nodes, "extra": extras}

    def _attributes(self, owner: Any, path: str, found: dict[str, Any]) -> dict[str, Any]:
        skip = self._skip if is_env(owner) else frozenset()
        encoded = {}
        for name, value in sorted(found.items()):  # an order that a restore keeps
            if name not in skip and not (skip and is_constant(value)):
                encoded[name] = self._encode(value, f"{path}/{name}" if path else name)
        return encoded

    def _encode(self, value: Any, path: str) -> Any:
        if value is None or type(value) in _PLAIN:
            return value
        if id(value) in self._labels:
            return {"label": self._labels[id(value)]}
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return self._array(np.asarray(value), path, "scalar")
        if id(value) not in self._index:
            self._index[id(value)] = len(self._nodes)
            self._alive.append(value)
            self._nodes.append(None)
            self._nodes[self._index[id(value)]] = self._node(value, path)
        return {"node": self._index[id(value)]}

    def _array(self, array: Array, path: str, kind: str) -> dict[str, str]:
        name = path if path not in self.arrays else f"{path}#{len(self.arrays)}"
        self.arrays[name] = array.copy()
        return {kind: name}

    def _node(self, value: Any, path: str) -> list[Any]:
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject or type(value) is not np.ndarray:
                return self._kept(value, path)
            return ["kept"] if _is_foreign_memory(value) else ["array", self._array(value, path, "a")["a"]]
        if isinstance(value, enum.Enum) and self._allowed(type(value)):
            return ["enum", class_name(type(value)), value.name]
        if isinstance(value, np.random.Generator):
            state = self._encode(value.bit_generator.state, f"{path}.state")
            return ["generator", type(value.bit_generator).__name__, state]
        if type(value) is random.Random:
            return ["random", self._encode(value.getstate(), f"{path}.state")]
        if isinstance(value, tuple) and type(value) is not tuple and self._allowed(type(value)):
            return ["record", class_name(type(value)), self._items(value, path)]
        container = _CONTAINER_NAMES.get(type(value))
        if container in ("dict", "ordered"):
            pairs = enumerate(value.items())
            return [container, [[self._encode(k, f"{path}.k{i}"), self._encode(v, f"{path}.{k}")]
                                for i, (k, v) in pairs]]  # fmt: skip
        if container == "deque":
            return [container, self._items(value, path), value.maxlen]
        if container in ("set", "frozenset"):
            return [container, self._items(sorted(value, key=repr), path)]
        if container is not None:
            return [container, self._items(value, path)]
        if is_constant(value):
            return ["kept"]
        if is_env(value):
            return ["env", class_name(type(value)), self._attributes(value, path, attributes_of(value))]
        if self._allowed(type(value)) and not isinstance(value, BaseException):
            found = attributes_of(value)
            return ["object", class_name(type(value)), self._attributes(value, path, found)]
        return self._kept(value, path)

    def _items(self, values: Iterable[Any], path: str) -> list[Any]:
        return [self._encode(v, f"{path}.{i}") for i, v in enumerate(values)]

    def _kept(self, value: Any, path: str) -> list[Any]:
        self.left_out.append(f"{path} ({class_name(type(value)).replace(':', '.')})")
        return ["kept"]

    def _allowed(self, cls: type) -> bool:
        return cls.__module__.split(".")[0] in self._packages and "<locals>" not in cls.__qualname__


_CONTAINER_NAMES: dict[type, str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    dict: "dict",
    collections.OrderedDict: "ordered",
    collections.deque: "deque",
}


def readable(value: dict[str, Any]) -> dict[str, str]:
    """Each captured attribute of the root as text, references resolved: to name what differs."""

    def text(encoded: Any, above: tuple[int, ...]) -> str:
        if isinstance(encoded, dict) and "node" in encoded:
            number = encoded["node"]
            return "..." if number in above else text(value["nodes"][number], (*above, number))
        if isinstance(encoded, dict):
            return "{" + ", ".join(f"{k}: {text(v, above)}" for k, v in encoded.items()) + "}"
        if isinstance(encoded, list):
            return "[" + ", ".join(text(item, above) for item in encoded) + "]"
        return repr(encoded)

    return {name: text(encoded, (0,)) for name, encoded in value["nodes"][0][2].items()}
