"""The attributes of an environment object as JSON and named arrays.

This is a deep copy into plain data: containers, arrays, random generators, and objects of the environment's
own package, with shared references, shared memory and bound methods kept. ``restoring.py`` is the way back.

What cannot be such data (functions, spaces, simulator handles) is *kept*: a restore leaves the live value.
"""

from __future__ import annotations

import collections
import enum
import functools
import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from scout_rl.codecs import sharing
from scout_rl.codecs.held_code import code_parts, first_held, method_name, receiver
from scout_rl.codecs.kinds import SKIPPED, attributes_of, class_name, is_constant, is_env
from scout_rl.files.archive import Array

_PLAIN = (bool, int, float, str)
_CONTENT = (
    BaseException, type, int, float, complex, str, bytes, bytearray, list, dict, set, frozenset, collections.deque,
)  # fmt: skip
"""An object that is one of these is more than its attributes."""
_MADE_ANEW = ("array", "view", "list", "dict", "ordered", "set", "deque", "object", "random")
"""Kinds of nodes that a restore makes anew and that someone could write to."""


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
        self._paths = [""]
        self._seen: list[tuple[int, str, Array]] = []  # node, name and value of every array
        self._views = False
        self._code: list[tuple[int, str, Any]] = []  # node, path and value of code that holds data
        self._functions: list[tuple[str, Any]] = []  # path and value of other code
        attributes = self._attributes(root, "", {**attributes_of(root), **(replace or {})})
        self._nodes[0] = ["env", class_name(type(root)), attributes]
        extras = {name: self._encode(value, f"{name}") for name, value in (extra or {}).items()}
        while self._code:  # after all else, so that what code holds is named by the attribute that it is
            number, path, code = self._code.pop(0)
            self._nodes[number] = self._code_node(code, path)
        if self._views:
            self._share_memory()
        for path, code in self._functions:
            self._check_closure(code, path)
        self.value = {"nodes": self._nodes, "extra": extras}

    def _attributes(self, owner: Any, path: str, found: dict[str, Any]) -> dict[str, Any]:
        skip = self._skip if is_env(owner) else frozenset()
        encoded = {}
        for name, value in sorted(found.items()):  # an order that a restore keeps
            if name in skip:
                continue
            where = f"{path}/{name}" if path else name
            if skip and is_constant(value) and not self._holds_data(value):
                self._functions.append((where, value))
            else:
                encoded[name] = self._encode(value, where)
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
            self._paths.append(path)
            self._nodes[self._index[id(value)]] = self._node(value, path)
        return {"node": self._index[id(value)]}

    def _array(self, array: Array, path: str, kind: str) -> dict[str, str]:
        name = path if path not in self.arrays else f"{path}#{len(self.arrays)}"
        self.arrays[name] = array.copy()
        return {kind: name}

    def _array_node(self, value: Array, path: str) -> list[Any]:
        if value.dtype.hasobject or type(value) is not np.ndarray:
            return self._kept(value, path)
        if value.base is not None:
            owner = sharing.foreign_owner(value)
            if owner is not None:
                whose = class_name(type(owner)).replace(":", ".")
                self.left_out.append(f"{path} (an array in the memory of a {whose}; keep a copy of it)")
                return ["kept"]
            self._views = True
        name = self._array(value, path, "a")["a"]
        self._seen.append((self._index[id(value)], name, value))
        if value.flags.c_contiguous:
            return ["array", name]
        order = sharing.memory_order(value.copy(order="K"))
        return ["array", name] if order == list(range(value.ndim)) else ["array", name, order]

    def _node(self, value: Any, path: str) -> list[Any]:
        if isinstance(value, np.ndarray):
            return self._array_node(value, path)
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
            if self._holds_data(value):
                self._code.append((self._index[id(value)], path, value))
            else:
                self._functions.append((path, value))
            return ["kept"]
        if is_env(value):
            return ["env", class_name(type(value)), self._attributes(value, path, attributes_of(value))]
        if self._is_object(value):
            found = attributes_of(value)
            return ["object", class_name(type(value)), self._attributes(value, path, found)]
        return self._kept(value, path)

    def _code_node(self, value: Any, path: str) -> list[Any]:
        """A method by its receiver and name, a partial by its parts."""
        if isinstance(value, functools.partial):
            words = [[k, self._encode(v, f"{path}.{k}")] for k, v in value.keywords.items()]
            return ["partial", self._encode(value.func, f"{path}.func"), self._items(value.args, path), words]
        name = method_name(value)
        if name is None:
            self.left_out.append(f"{path} (a method that the class of its object does not have)")
            return ["kept"]
        return ["method", self._encode(receiver(value), f"{path}.self"), name]

    def _holds_data(self, code: Any) -> bool:
        """Whether restored code must be bound to restored data."""
        if type(code) is functools.partial:
            return any(self._is_data(part) or self._holds_data(part) for part in code_parts(code))
        owner = receiver(code)
        return owner is not None and self._is_data(owner) and not (is_env(owner) and method_name(code) is None)

    def _share_memory(self) -> None:
        """Turn arrays that lie in the memory of others into views of those."""
        arrays = [array for _, _, array in self._seen]
        for group in sharing.groups(arrays):
            if group.owner is not None:
                owner, memory = self._seen[group.owner][0], arrays[group.owner]
            else:
                owner, memory = len(self._nodes), sharing.join(group, arrays)
                path = f"{self._seen[group.members[0]][1]}.memory"
                self._nodes.append(["array", self._array(memory, path, "a")["a"]])
                self._paths.append(path)
            for member in group.members:
                if member != group.owner:
                    number, name, array = self._seen[member]
                    self._nodes[number] = self._view_node(group, array, name, owner, memory.dtype)

    def _view_node(self, group: sharing.Group, array: Array, name: str, owner: int, dtype: np.dtype[Any]) -> list[Any]:
        kind = None if array.dtype == dtype else sharing.plain_name(array.dtype)
        if array.dtype != dtype and kind is None:
            self.left_out.append(f"{name} (a view with fields of an array that has others)")
            return ["kept"]
        place = sharing.place_in(group, array)
        return ["view", name, {"node": owner}, *place, kind, bool(array.flags.writeable), sharing.checksum(array)]

    def _check_closure(self, code: Any, path: str) -> None:
        """Refuse code that goes on to hold what a restore replaces: the two would part."""

        def replaced(value: Any) -> str | None:
            number = self._index.get(id(value))
            if number is not None and self._nodes[number][0] in _MADE_ANEW:
                return self._paths[number]
            if isinstance(value, np.ndarray):
                return next((name for _, name, array in self._seen if np.may_share_memory(array, value)), None)
            return None

        held = first_held(code, lambda v: replaced(v) is not None, self._searched)
        if held is not None:
            self.left_out.append(f"{path} (a function that holds {replaced(held)}, which a restore makes anew)")

    def _searched(self, value: Any) -> dict[str, Any]:
        return attributes_of(value) if self._is_object(value) and not is_env(value) else {}

    def _is_data(self, value: Any) -> bool:
        chance = isinstance(value, np.random.Generator) or type(value) is random.Random
        array = isinstance(value, np.ndarray) or type(value) in _CONTAINER_NAMES
        return array or chance or is_env(value) or self._is_object(value)

    def _is_object(self, value: Any) -> bool:
        """Whether this is an object of the environment's packages whose attributes are all there is to it."""
        return self._allowed(type(value)) and not isinstance(value, _CONTENT)

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
