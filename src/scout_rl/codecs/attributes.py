"""The attributes of an environment object as JSON and named arrays, and back.

This is a deep copy into plain data: containers, arrays, random generators, and objects of the environment's
own package, with shared references kept. Restoring never runs a constructor or any stored code: objects are
made empty and given their attributes, and only classes of allowed, already imported packages can be named.

What cannot be such data (functions, spaces, simulator handles) is *kept*: a restore leaves the live value.
"""

from __future__ import annotations

import collections
import enum
import functools
import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scout_rl.archive import Array

SKIPPED = frozenset(
    """spec metadata render_mode action_space observation_space reset step _ezpickle_args _ezpickle_kwargs
    window clock screen surf viewer render_size screen_size screen_width screen_height isopen
    mujoco_renderer fullpath tmp_xml_file_path camera_id camera_name""".split()
)
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
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MISSING = object()
_PLAIN = (bool, int, float, str)


def own_packages(env: Any) -> frozenset[str]:
    """The top-level packages that the environment's class comes from, infrastructure left out."""
    infrastructure = {"builtins", "abc", "typing", "gymnasium", "gym", "numpy", "mujoco"}
    return frozenset(cls.__module__.split(".")[0] for cls in type(env).__mro__) - infrastructure


def is_env(value: Any) -> bool:
    """Whether this is an environment (held by another one): restored in place, never made anew."""
    return any(c.__module__ == "gymnasium.core" and c.__name__ == "Env" for c in type(value).__mro__)


def _is_constant(value: Any) -> bool:
    if isinstance(value, CONSTANT_TYPES):
        return True
    return any(c.__module__.startswith("gymnasium.spaces") for c in type(value).__mro__)


def _is_foreign_memory(array: Array) -> bool:
    """Whether an array is a window into a simulator's own memory (``env.x = data.body('hand').xpos``)."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base is not None and not isinstance(base, bytes | bytearray | memoryview)


def _class_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _slots_and_dict(value: Any) -> dict[str, Any]:
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
        attributes = self._attributes(root, "", {**_slots_and_dict(root), **(replace or {})})
        self._nodes[0] = ["env", _class_name(type(root)), attributes]
        extras = {name: self._encode(value, f"{name}") for name, value in (extra or {}).items()}
        self.value = {"nodes": self._nodes, "extra": extras}

    def _attributes(self, owner: Any, path: str, found: dict[str, Any]) -> dict[str, Any]:
        skip = self._skip if is_env(owner) else frozenset()
        encoded = {}
        for name, value in sorted(found.items()):  # an order that a restore keeps
            if name not in skip:
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
            return ["enum", _class_name(type(value)), value.name]
        if isinstance(value, np.random.Generator):
            state = self._encode(value.bit_generator.state, f"{path}.state")
            return ["generator", type(value.bit_generator).__name__, state]
        if type(value) is random.Random:
            return ["random", self._encode(value.getstate(), f"{path}.state")]
        if isinstance(value, tuple) and type(value) is not tuple and self._allowed(type(value)):
            return ["record", _class_name(type(value)), self._items(value, path)]
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
        if _is_constant(value):
            return ["kept"]
        if is_env(value):
            return ["env", _class_name(type(value)), self._attributes(value, path, _slots_and_dict(value))]
        if self._allowed(type(value)) and not isinstance(value, BaseException):
            found = _slots_and_dict(value)
            return ["object", _class_name(type(value)), self._attributes(value, path, found)]
        return self._kept(value, path)

    def _items(self, values: Iterable[Any], path: str) -> list[Any]:
        return [self._encode(v, f"{path}.{i}") for i, v in enumerate(values)]

    def _kept(self, value: Any, path: str) -> list[Any]:
        self.left_out.append(f"{path} ({_class_name(type(value)).replace(':', '.')})")
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


class Restore:
    """One pass that puts captured attributes back onto a live root object of the same class.

    With ``generators=False`` the live random generators run on; the captured ones are left aside.
    """

    def __init__(
        self,
        root: Any,
        value: dict[str, Any],
        arrays: dict[str, Array],
        *,
        packages: Iterable[str],
        generators: bool = True,
        label: Callable[[str], Any] | None = None,
        extra: Iterable[str] = (),
    ) -> None:
        self._nodes = value["nodes"]
        self._arrays = arrays
        self._packages = frozenset(packages)
        self._generators = generators
        self._label = label
        self._made: dict[int, Any] = {}
        # Extras first: what the caller stores itself may be built from them, and labels refer to that.
        self._made[0] = root
        self.extra = {name: self._decode(value["extra"][name], _MISSING, name) for name in extra}

    def attributes(self) -> None:
        """Set the attributes of the root and of the environments it holds."""
        self._fill_env(self._made[0], self._nodes[0], "")

    def _fill_env(self, live: Any, node: list[Any], path: str) -> None:
        _, cls, attributes = node
        if live is _MISSING or _class_name(type(live)).split(":")[1] != cls.split(":")[1]:
            theirs, ours = cls.split(":")[1], type(live).__qualname__
            raise ValueError(f"this state is one of {theirs}, and the environment is a {ours}.")
        for name, encoded in attributes.items():
            where = f"{path}/{name}" if path else name
            before = getattr(live, name, _MISSING)
            after = self._decode(encoded, before, where)
            if after is not before:
                object.__setattr__(live, name, after)

    def _decode(self, encoded: Any, live: Any, path: str) -> Any:
        if not isinstance(encoded, dict):
            return encoded
        if "scalar" in encoded:
            return self._arrays[encoded["scalar"]][()]
        if "label" in encoded:
            if self._label is None:
                raise ValueError(f"{path} refers to {encoded['label']!r}, which this codec does not store.")
            return self._label(encoded["label"])
        number = encoded["node"]
        if number not in self._made:
            self._make(number, live, path)
        return self._made[number]

    def _make(self, number: int, live: Any, path: str) -> None:
        """Make node ``number``; containers and objects are entered before their content, for cycles."""
        node = self._nodes[number]
        kind = node[0]
        if kind == "kept":
            if live is _MISSING:
                raise ValueError(f"the environment has no {path!r} yet: reset it once before restoring.")
            self._made[number] = live
        elif kind == "array":
            self._made[number] = np.array(self._arrays[node[1]])
        elif kind == "env":
            self._made[number] = live
            self._fill_env(live, node, path)
        elif kind == "enum":
            self._made[number] = self._class(node[1], path)[node[2]]
        elif kind == "generator":
            self._made[number] = self._generator(node, live, path)
        elif kind == "random":
            chance = random.Random()
            chance.setstate(self._decode(node[1], _MISSING, path))
            self._made[number] = live if not self._generators and live is not _MISSING else chance
        elif kind == "object":
            cls = self._class(node[1], path)
            made = self._made[number] = object.__new__(cls)
            same = type(live) is cls
            for name, encoded in node[2].items():
                child = getattr(live, name, _MISSING) if same else _MISSING
                object.__setattr__(made, name, self._decode(encoded, child, f"{path}/{name}"))
        else:
            self._container(number, node, live, path)

    def _container(self, number: int, node: list[Any], live: Any, path: str) -> None:
        kind = node[0]
        if kind in ("dict", "ordered"):
            mapping: dict[Any, Any] = {} if kind == "dict" else collections.OrderedDict()
            self._made[number] = mapping
            before = live if isinstance(live, dict) else {}
            for k, v in node[1]:
                key = self._decode(k, _MISSING, path)
                mapping[key] = self._decode(v, before.get(key, _MISSING), f"{path}.{key}")
            return
        if kind == "list":
            self._made[number] = []  # entered early: a list may contain itself
        old = list(live) if isinstance(live, list | tuple | collections.deque) else []
        encoded = node[2] if kind == "record" else node[1]
        items = [
            self._decode(item, old[i] if i < len(old) else _MISSING, f"{path}.{i}")
            for i, item in enumerate(encoded)
        ]
        if kind == "list":
            self._made[number].extend(items)
        elif kind == "record":
            self._made[number] = tuple.__new__(self._class(node[1], path), items)
        elif kind == "deque":
            self._made[number] = collections.deque(items, maxlen=node[2])
        else:
            self._made[number] = {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)

    def _generator(self, node: list[Any], live: Any, path: str) -> Any:
        if not self._generators and isinstance(live, np.random.Generator):
            return live
        if node[1] not in BIT_GENERATORS:
            raise ValueError(f"{path} has a bit generator {node[1]!r} that NumPy does not have.")
        bits = getattr(np.random, node[1])()
        bits.state = self._decode(node[2], _MISSING, path)
        return np.random.Generator(bits)

    def _class(self, name: str, path: str) -> Any:
        module, qualname = name.split(":")
        found: Any = sys.modules.get(module)
        if module.split(".")[0] not in self._packages or found is None:
            raise ValueError(
                f"{path} is a {qualname} of {module!r}, which is no package of this environment."
            )
        for part in qualname.split("."):
            found = getattr(found, part)
        if not isinstance(found, type):
            raise ValueError(f"{path} names {name!r}, which is no class.")
        return found
