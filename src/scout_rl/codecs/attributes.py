"""The attributes of an environment object as JSON and named arrays, for files, and back.

Captured are numbers, strings, arrays, NumPy's random generators, lists, tuples, sets, deques, dictionaries, objects of
the environment's package, and shared references. Everything else is *kept*: a restore leaves the live value, and
``left_out`` names it.

A restore runs no constructor and no stored code: objects are created empty and then get their attributes. Only classes
of allowed packages that are already imported can be named.
"""

from __future__ import annotations

import collections
import enum
import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from scout_rl.codecs.kinds import SKIPPED, attributes_of, class_name, is_constant, is_env, memory_owner, own_packages
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MISSING = object()
SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", collections.deque: "deque"}


class Capture:
    """One pass over the attributes of a root object.

    ``value`` is the JSON part, ``arrays`` the numbers, and ``left_out`` names what could not be captured.
    ``replace`` overrides attributes of the root, such as time counters. ``labels`` names objects that the caller
    stores: they become references by that label. ``packages`` are by default those of the root's class.
    """

    def __init__(
        self,
        root: Any,
        *,
        packages: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        replace: Mapping[str, Any] | None = None,
        labels: Mapping[int, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.arrays: dict[str, Array] = {}
        self.left_out: list[str] = []
        self._packages = own_packages(root) if packages is None else frozenset(packages)
        self._skip = SKIPPED | frozenset(skip)
        self._labels = labels or {}
        self._places: dict[int, tuple[str, Any]] = {id(root): ("", root)}
        """The path of each object, by id; and the object, because ids are unique only while it lives."""
        self._paths: set[str] = set()
        self._memories: dict[int, list[tuple[str, Array]]] = {}
        # Extras first, as in a restore: the caller builds its objects from them, and labels refer to those.
        extras = {name: self._encode(value, f"extra {name}") for name, value in (extra or {}).items()}
        attributes = self._attributes(root, "", {**attributes_of(root), **(replace or {})})
        self.value = {"class": class_name(type(root)), "attributes": attributes, "extra": extras}

    def _attributes(self, owner: Any, path: str, attributes: Mapping[str, Any]) -> list[Any]:
        """Pairs of name and value in the object's order: later values refer back to earlier ones."""
        skip = self._skip if is_env(owner) else frozenset()
        return [
            [name, self._encode(value, f"{path}/{name}" if path else name)]
            for name, value in attributes.items()
            if name not in skip and not (skip and is_constant(value))
        ]

    def _encode(self, value: Any, path: str) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) in self._labels:
            return {"kind": "label", "id": self._labels[id(value)]}
        if id(value) in self._places:
            return {"kind": "same", "id": self._places[id(value)][0]}
        while path in self._paths:  # keys 1 and "1" of one dictionary
            path += "'"
        self._paths.add(path)
        self._places[id(value)] = path, value
        kind, content = self._content(value, path)
        return {"kind": kind, "id": path, **content}

    def _content(self, value: Any, path: str) -> tuple[str, dict[str, Any]]:
        """The kind of a value, and its content."""
        if type(value) is np.ndarray and not value.dtype.hasobject:
            return self._array(value, path)
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            self.arrays[path] = np.asarray(value)
            return "scalar", {}
        if isinstance(value, np.random.Generator):
            bits = value.bit_generator
            return "generator", {"bits": type(bits).__name__, "state": self._encode(bits.state, f"{path}.state")}
        if type(value) in SEQUENCES:
            ordered = sorted(value, key=repr) if isinstance(value, set) else value
            items = [self._encode(item, f"{path}.{i}") for i, item in enumerate(ordered)]
            return SEQUENCES[type(value)], {"items": items, "longest": getattr(value, "maxlen", None)}
        if type(value) is dict:
            pairs = enumerate(value.items())
            items = [[self._encode(k, f"{path}.k{i}"), self._encode(v, f"{path}.{k}")] for i, (k, v) in pairs]
            return "dict", {"items": items}
        if is_env(value) or self._is_object(value):
            attributes = self._attributes(value, path, attributes_of(value))
            name = class_name(type(value))
            return "env" if is_env(value) else "object", {"class": name, "attributes": attributes}
        return self._kept(path, class_name(type(value)).replace(":", "."))

    def _array(self, value: Array, path: str) -> tuple[str, dict[str, Any]]:
        owner, foreign = memory_owner(value)
        if foreign is not None:
            return self._kept(path, f"an array in the memory of a {foreign}; keep a copy of it")
        neighbours = self._memories.setdefault(id(owner), [])
        sharing = next((name for name, array in neighbours if np.may_share_memory(array, value)), None)
        if sharing is not None:
            self._kept(path, f"it shares memory with {sharing}")
        neighbours.append((path, value))
        self.arrays[path] = value.copy(order="K")
        return "array", {}

    def _kept(self, path: str, reason: str) -> tuple[str, dict[str, Any]]:
        self.left_out.append(f"{path} ({reason})")
        return "kept", {}

    def _is_object(self, value: Any) -> bool:
        """Whether this is an object of the environment's packages that its attributes describe completely."""
        cls = type(value)
        if cls.__module__.split(".")[0] not in self._packages or "<" in cls.__qualname__:
            return False
        try:
            object.__new__(cls)  # refused for subclasses of list, of exceptions or of extension types
        except TypeError:
            return False
        return not isinstance(value, enum.Enum)


class Restore:
    """One pass that puts captured attributes back onto a live root object of the same class.

    With ``generators=False`` the live random generators run on, and the captured ones are ignored. Attributes that only
    the live object has stay: they may be the user's, or newer than the state.
    """

    def __init__(
        self,
        root: Any,
        value: Mapping[str, Any],
        arrays: Mapping[str, Array],
        *,
        generators: bool = True,
        label: Callable[[str], Any] | None = None,
    ) -> None:
        self._root, self._value, self._arrays = root, value, arrays
        self._generators, self._label = generators, label
        self._objects: dict[str, Any] = {"": root}
        """The restored objects by their place."""
        self.extra = {name: self._decode(encoded) for name, encoded in value["extra"].items()}

    def attributes(self) -> None:
        """Set the attributes of the root and of the environments it holds."""
        check_class(self._root, self._value["class"])
        self._fill(self._root, self._root, self._value["attributes"])

    def _fill(self, restored: Any, live: Any, attributes: Iterable[Any]) -> None:
        for name, encoded in attributes:
            object.__setattr__(restored, name, self._decode(encoded, getattr(live, name, _MISSING)))

    def _decode(self, node: Any, live: Any = _MISSING) -> Any:
        """The value that ``node`` describes; ``live`` is the environment's current value."""
        if not isinstance(node, dict):
            return node
        kind, place = node["kind"], node["id"]
        if kind == "same":
            return self._objects[place]
        if kind == "label":
            if self._label is None:
                raise Refusal(f"this state refers to {place!r}, which this codec does not store.")
            return self._label(place)
        if kind in ("kept", "env") and live is _MISSING:
            raise Refusal(f"the environment has no {place!r} yet: reset it once before restoring.")
        value = self._objects[place] = self._empty(kind, node, live)  # before its content, which may refer to it
        if kind == "env":
            check_class(live, node["class"])
        if kind in ("env", "object"):
            self._fill(value, live, node["attributes"])
        elif kind == "dict":
            for k, v in node["items"]:
                key = self._decode(k)
                value[key] = self._decode(v, _inside(live, key))
        elif kind in ("list", "deque"):
            value.extend(self._items(node, live))
        return value

    def _items(self, node: Mapping[str, Any], live: Any) -> list[Any]:
        return [self._decode(item, _inside(live, i)) for i, item in enumerate(node["items"])]

    def _empty(self, kind: str, node: Mapping[str, Any], live: Any) -> Any:
        """A value to fill; tuples, sets, arrays and generators come with their content."""
        if kind in ("tuple", "set"):  # a tuple cannot be filled later, and a set hashes its items
            return (tuple if kind == "tuple" else set)(self._items(node, live))
        if kind in ("array", "scalar"):
            stored = self._arrays[node["id"]]
            return stored.copy(order="K") if kind == "array" else stored[()]
        if kind == "generator":
            return self._generator(node, live)
        if kind == "object":
            return object.__new__(self._class(node["class"], node["id"]))
        if kind == "deque":
            return collections.deque(maxlen=node["longest"])
        return live if kind in ("kept", "env") else {"list": list, "dict": dict}[kind]()

    def _generator(self, node: Mapping[str, Any], live: Any) -> np.random.Generator:
        if not self._generators and isinstance(live, np.random.Generator):
            return live
        if node["bits"] not in BIT_GENERATORS:
            raise Refusal(f"{node['id']} has a bit generator {node['bits']!r} that NumPy does not have.")
        bits = getattr(np.random, node["bits"])(0)
        bits.state = self._decode(node["state"])
        return np.random.Generator(bits)

    def _class(self, name: str, place: str) -> Any:
        module, qualname = name.split(":")
        if module.split(".")[0] not in own_packages(self._root) or module not in sys.modules:
            raise Refusal(f"{place} is a {qualname} of {module!r}, which is no package of this environment.")
        cls: Any = operator.attrgetter(qualname)(sys.modules[module])
        if not isinstance(cls, type):
            raise Refusal(f"{place} names {name!r}, which is no class.")
        return cls


def _inside(live: Any, key: Any) -> Any:
    try:
        return live[key]
    except (TypeError, LookupError):
        return _MISSING


def check_class(live: Any, name: str) -> None:
    """Refuse a state of another class of environment."""
    theirs, ours = name.split(":")[1], type(live).__qualname__
    if theirs != ours:
        raise Refusal(f"this state is one of {theirs}, and the environment is a {ours}.")
