"""Put captured attributes back onto a live environment.

No constructor and no stored code runs: objects are created empty and then get their attributes. Only classes of
allowed packages that are already imported can be named.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MISSING = object()


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
        packages: Iterable[str],
        generators: bool = True,
        label: Callable[[str], Any] | None = None,
    ) -> None:
        self._root, self._value, self._arrays = root, value, arrays
        self._packages = frozenset(packages)
        self._generators = generators
        self._label = label
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
        cls: Any = sys.modules.get(module)
        if module.split(".")[0] not in self._packages or cls is None:
            raise Refusal(f"{place} is a {qualname} of {module!r}, which is no package of this environment.")
        for part in qualname.split("."):
            cls = getattr(cls, part)
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
