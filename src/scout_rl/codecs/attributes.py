"""The attributes of an environment object as JSON and named arrays, for files.

Captured are numbers, strings, arrays, NumPy's random generators, lists, tuples, sets, deques, dictionaries, objects of
the environment's package, and shared references. Everything else is *kept*: a restore leaves the live value, and
``left_out`` names it. ``restoring.py`` is the inverse.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scout_rl.codecs.kinds import SKIPPED, attributes_of, class_name, is_constant, is_env, memory_owner
from scout_rl.files.archive import Array

SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", collections.deque: "deque"}


class Capture:
    """One pass over the attributes of a root object.

    ``value`` is the JSON part, ``arrays`` the numbers, and ``left_out`` names what could not be captured.
    ``replace`` overrides attributes of the root, such as time counters. ``labels`` names objects that the caller
    stores: they become references by that label.
    """

    def __init__(
        self,
        root: Any,
        *,
        packages: Iterable[str],
        skip: Iterable[str] = (),
        replace: Mapping[str, Any] | None = None,
        labels: Mapping[int, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.arrays: dict[str, Array] = {}
        self.left_out: list[str] = []
        self._packages = frozenset(packages)
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
        for name, array in neighbours:
            if np.may_share_memory(array, value):
                self._kept(path, f"it shares memory with {name}")
                break
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
