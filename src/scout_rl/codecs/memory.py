"""Deep copies for environments that hold more than files can. They live in this process only.

``copy.deepcopy`` keeps shared references, bound methods and partials. It silently breaks two things:

- Arrays that share memory become independent. Here the memory is copied once, and the arrays are views of the copy.
- Functions, methods of built-in objects and weak references are not copied. One that holds part of the state would
  still read the original's. It is refused, and the attribute is named.
"""

from __future__ import annotations

import copy
import gc
import types
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from scout_rl.codecs.attributes import check_class
from scout_rl.codecs.kinds import (
    BUILT_IN_METHODS,
    SKIPPED,
    attributes_of,
    class_name,
    code_parts,
    is_constant,
    memory_owner,
    reachable,
)
from scout_rl.codecs.wording import brief
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal

Originals = dict[str, list[Any]]
"""The objects that were copied, by the attribute that first led to them."""
_SHARED = (types.FunctionType, *BUILT_IN_METHODS, weakref.ref)


class Memory:
    """A deep copy of an environment's attributes; ``env`` in it stands for the environment that is restored."""

    def __init__(self, base: Any, replace: Mapping[str, Any]) -> None:
        attributes = {**attributes_of(base), **replace}
        attributes = {n: v for n, v in attributes.items() if n not in SKIPPED and not is_constant(v)}
        self.env = object()
        self.cls = class_name(type(base))
        self.attributes, originals, self._shares_memory = _deep_copy(attributes, {id(base): self.env})
        _refuse_shared_code(attributes, originals, {id(base)})

    def restore(self, base: Any, *, generators: bool = True) -> None:
        """Set the attributes; with ``generators=False`` the live random generators run on."""
        check_class(base, self.cls)
        known = {id(self.env): base}
        if not generators:
            stored = {name: v for name, v in self.attributes.items() if isinstance(v, np.random.Generator)}
            live = {id(v): getattr(base, name, None) for name, v in stored.items()}
            known |= {key: v for key, v in live.items() if isinstance(v, np.random.Generator)}
        for name, value in _deep_copy(self.attributes, known)[0].items():
            object.__setattr__(base, name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Memory:
        return self  # nothing writes to it

    def __getstate__(self) -> dict[str, Any]:
        if self._shares_memory:
            raise Refusal("a state with arrays that share memory cannot go to another process: a pickle parts them.")
        return vars(self)


def _deep_copy(attributes: Mapping[str, Any], known: Mapping[int, Any]) -> tuple[dict[str, Any], Originals, bool]:
    """Copies of the attributes, the originals per attribute, and whether any arrays share memory.

    ``known`` holds existing copies by the id of the original.
    """
    copies, originals = _copy_all(attributes, known)
    views = _views(originals)
    return _copy_all(attributes, {**known, **views})[0] if views else copies, originals, bool(views)


def _copy_all(attributes: Mapping[str, Any], known: Mapping[int, Any]) -> tuple[dict[str, Any], Originals]:
    memo: dict[int, Any] = dict(known)
    copied: list[Any] = []
    memo[id(memo)] = copied  # deepcopy appends the objects that it has copied
    copies: dict[str, Any] = {}
    originals: Originals = {}
    for name, value in attributes.items():
        begin = len(copied)
        try:
            copies[name] = copy.deepcopy(value, memo)
        except Exception as error:  # deepcopy runs the objects' code, which may raise anything
            raise Refusal(f"{name} ({type(value).__name__}: {brief(error)})") from error
        originals[name] = copied[begin:]
    return copies, originals


def _views(originals: Originals) -> dict[int, Array]:
    """Copies of the arrays that share memory with others, by the id of the original."""
    memories: dict[int, list[tuple[str, Array, Array]]] = {}
    for name, objects in originals.items():
        for array in objects:
            if isinstance(array, np.ndarray):
                owner, foreign = memory_owner(array)
                if foreign is not None:
                    raise Refusal(f"{name} (an array in the memory of a {foreign}; keep a copy of it)")
                memories.setdefault(id(owner), []).append((name, array, owner))
    views = {}
    for together in memories.values():
        owner = together[0][2]
        if len(together) == 1 or not owner.nbytes:
            continue
        memory = np.empty(owner.nbytes, np.uint8)
        for name, array, _ in [("", owner, owner), *together]:
            if type(array) is not np.ndarray or array.dtype.hasobject:
                raise Refusal(f"{name or together[0][0]} (a view of memory that is no plain array's)")
            offset = _address(array) - _address(owner)
            view = views[id(array)] = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
            if array is owner:
                view[...] = owner
            view.flags.writeable = array.flags.writeable
    return views


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _refuse_shared_code(attributes: Mapping[str, Any], originals: Originals, replaced: set[int]) -> None:
    replaced |= {id(_whole(original)) for objects in originals.values() for original in objects}
    for name, objects in originals.items():
        for holder in ([attributes[name]], *objects):
            for code in gc.get_referents(holder):
                if isinstance(code, _SHARED) and any(id(_whole(part)) in replaced for part in reachable(code, _parts)):
                    kind = type(code).__name__
                    raise Refusal(f"{name} (a {kind} that holds part of the state, out of a copy's reach)")


def _whole(value: Any) -> Any:
    """The owner of a view's memory; any other value itself."""
    return memory_owner(value)[0] if isinstance(value, np.ndarray) else value


def _parts(value: Any) -> list[Any]:
    if isinstance(value, types.ModuleType | type):
        return []
    parts = [value()] if isinstance(value, weakref.ref) else code_parts(value)
    return gc.get_referents(value) if parts is None else parts
