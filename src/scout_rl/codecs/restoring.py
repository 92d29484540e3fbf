"""Captured attributes back onto a live environment.

No constructor and no stored code runs: objects are made empty and given their attributes, and only classes of
allowed, already imported packages can be named.
"""

from __future__ import annotations

import collections
import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scout_rl.archive import Array
from scout_rl.codecs.attributes import SKIPPED, Capture, attributes_of, class_name, is_constant

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MISSING = object()


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
        skip: Iterable[str] = (),
        generators: bool = True,
        label: Callable[[str], Any] | None = None,
        extra: Iterable[str] = (),
    ) -> None:
        self._nodes = value["nodes"]
        self._arrays = arrays
        self._packages = frozenset(packages)
        self._skip = SKIPPED | frozenset(skip)
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
        if live is _MISSING or class_name(type(live)).split(":")[1] != cls.split(":")[1]:
            theirs, ours = cls.split(":")[1], type(live).__qualname__
            raise ValueError(f"this state is one of {theirs}, and the environment is a {ours}.")
        for name, encoded in attributes.items():
            where = f"{path}/{name}" if path else name
            before = getattr(live, name, _MISSING)
            after = self._decode(encoded, before, where)
            if after is not before:
                object.__setattr__(live, name, after)
        for name in attributes_of(live).keys() - attributes.keys() - self._skip:
            if self._is_data(getattr(live, name)):  # it came after the state: an episode's leftover
                object.__delattr__(live, name)

    def _is_data(self, value: Any) -> bool:
        holder = types.SimpleNamespace(value=value)
        return not is_constant(value) and not Capture(holder, packages=self._packages).left_out

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
