"""Captured attributes back onto a live environment.

No constructor and no stored code runs: objects are made empty and given their attributes, and only classes of
allowed, already imported packages can be named.
"""

from __future__ import annotations

import collections
import functools
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scout_rl.codecs.held_code import bind
from scout_rl.codecs.kinds import class_name
from scout_rl.codecs.sharing import checksum, laid_out, view_of
from scout_rl.files.archive import Array

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MISSING = object()


class Restore:
    """One pass that puts captured attributes back onto a live root object of the same class.

    With ``generators=False`` the live random generators run on; the captured ones are left aside. Attributes
    that the live object has and the state has not stay: they may be the user's, or newer than the state.
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
        self._claimed: set[int] = set()
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
            stored = self._arrays[node[1]]
            self._made[number] = np.array(stored) if len(node) == 2 else laid_out(stored, node[2])
        elif kind == "view":
            self._made[number] = self._view(node, path)
        elif kind == "method":
            owner = self._decode(node[1], getattr(live, "__self__", _MISSING), path)
            self._made[number] = bind(owner, node[2], path)
        elif kind == "partial":
            self._made[number] = self._partial(node, live, path)
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

    def _view(self, node: list[Any], path: str) -> Array:
        _, name, encoded, offset, shape, strides, kind, writeable, captured = node
        owner, stored = self._decode(encoded, _MISSING, path), self._arrays[name]
        view = view_of(owner, offset, shape, strides, owner.dtype if kind is None else np.dtype(kind))
        if stored.shape != view.shape:
            raise ValueError(f"{path} lies in the memory of another array: its shape cannot become {stored.shape}.")
        if checksum(stored) != captured:
            view[...] = stored  # edited since: the edit is seen through the owner, too
        view.flags.writeable = writeable
        return view

    def _partial(self, node: list[Any], live: Any, path: str) -> Any:
        _, function, arguments, words = node
        old = live if isinstance(live, functools.partial) else functools.partial(int)
        before = [*old.args, *[_MISSING] * len(arguments)]
        decoded = [self._decode(a, b, f"{path}.{i}") for i, (a, b) in enumerate(zip(arguments, before, strict=False))]
        named = {k: self._decode(v, old.keywords.get(k, _MISSING), f"{path}.{k}") for k, v in words}
        return functools.partial(
            self._decode(function, _MISSING if old is not live else old.func, path), *decoded, **named
        )

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
            self._decode(item, old[i] if i < len(old) else _MISSING, f"{path}.{i}") for i, item in enumerate(encoded)
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
        state = self._decode(node[2], _MISSING, path)
        same = isinstance(live, np.random.Generator) and type(live.bit_generator).__name__ == node[1]
        if same and id(live) not in self._claimed:
            self._claimed.add(id(live))  # two captured generators never share one live one
            live.bit_generator.state = state
            return live
        bits = getattr(np.random, node[1])(0)
        bits.state = state
        return np.random.Generator(bits)

    def _class(self, name: str, path: str) -> Any:
        module, qualname = name.split(":")
        found: Any = sys.modules.get(module)
        if module.split(".")[0] not in self._packages or found is None:
            raise ValueError(f"{path} is a {qualname} of {module!r}, which is no package of this environment.")
        for part in qualname.split("."):
            found = getattr(found, part)
        if not isinstance(found, type):
            raise ValueError(f"{path} names {name!r}, which is no class.")
        return found
