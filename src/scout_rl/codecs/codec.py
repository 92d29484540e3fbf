"""The contract of a codec: an environment's state as a value, and back.

A codec has two methods. ``get_state(env)`` reads the simulator state of a (wrapped) environment into named arrays.
``set_state(env, state)`` puts it back and returns ``(observation, info)`` like the environment's ``reset()``. It starts
an episode: time limits and wrappers restart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from scout_rl.files.archive import Array, content_hash, read_archive, unpack_json, write_archive
from scout_rl.files.refusal import Refusal

Env = Any
"""A Gymnasium environment. Gymnasium is an extra, so its types are not used here."""
Start = tuple[Any, dict[str, Any]]
"""What ``reset()`` returns: observation and info."""


@dataclass(frozen=True, eq=False)
class State:
    """One simulator state: named arrays, the codec that read them, and the library versions.

    ``memory`` holds what arrays cannot, and ``unsaved`` names it. A state with ``memory`` cannot be saved, and equals
    only itself.
    """

    arrays: Mapping[str, Array]
    codec: str
    library: Mapping[str, str]
    memory: Any = None
    unsaved: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        frozen = {}
        for name, value in sorted(self.arrays.items()):
            array = np.array(value)
            if array.dtype.hasobject:
                raise Refusal(f"array {name!r} of a state holds Python objects; states hold plain arrays.")
            array.flags.writeable = False
            frozen[str(name)] = array
        object.__setattr__(self, "arrays", MappingProxyType(frozen))
        object.__setattr__(self, "library", MappingProxyType(dict(self.library)))

    def content(self) -> tuple[Mapping[str, Array], dict[str, Any]]:
        """The arrays and the JSON part, as files store them; a ``ValueError`` if the state has ``memory``."""
        if self.memory is not None:
            held = ", ".join(self.unsaved) or "something"
            raise Refusal(
                f"this state cannot be saved or hashed: it holds {held}, which is kept in memory only; keep the ladder "
                f"in memory, or write a codec with get_state and set_state that puts it into arrays."
            )
        return self.arrays, {"codec": self.codec, "library": dict(self.library)}

    @cached_property
    def sha256(self) -> str:
        """The content hash."""
        return content_hash(*self.content())

    @cached_property
    def attributes(self) -> tuple[Any, dict[str, Array]]:
        """The environment object's attributes as JSON and arrays, for codecs that store them."""
        prefix = "attributes/"
        arrays = {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}
        return unpack_json(self.arrays["attributes"]), arrays

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, State):
            return self is other
        return self.memory is None and other.memory is None and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256) if self.memory is None else id(self)

    def __repr__(self) -> str:
        size = sum(array.nbytes for array in self.arrays.values())
        rest = f"sha256 {self.sha256[:12]}" if self.memory is None else "and more in memory"
        return f"State({self.codec!r}, {len(self.arrays)} arrays, {size:,} bytes, {rest})"

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and deepcopy, which cannot copy mapping proxies."""
        return type(self), (dict(self.arrays), self.codec, dict(self.library), self.memory, self.unsaved)

    def replace(self, **arrays: Array) -> State:
        """The same state with some arrays replaced."""
        return State({**self.content()[0], **arrays}, self.codec, self.library)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write an npz file (no pickle); returns the content hash."""
        return write_archive(path, *self.content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read what `save` wrote; a damaged file is a ``ValueError``."""
        arrays, meta, _ = read_archive(path)
        return cls(arrays, meta["codec"], meta["library"])


def pack_states(states: Sequence[State]) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """Many states for one file: the distinct arrays, and per state its metadata with the key of each array."""
    keys: dict[str, str] = {}
    arrays: dict[str, Array] = {}
    index = []
    for state in states:
        names = {}
        content, meta = state.content()
        for name, array in content.items():
            digest = content_hash({"": array}, {})
            if digest not in keys:
                keys[digest] = f"array{len(keys)}"
                arrays[keys[digest]] = array
            names[name] = keys[digest]
        index.append({**meta, "arrays": names})
    return arrays, index


def unpack_states(arrays: Mapping[str, Array], index: Sequence[Mapping[str, Any]]) -> list[State]:
    """The states that `pack_states` packed."""
    return [
        State({name: arrays[key] for name, key in entry["arrays"].items()}, entry["codec"], entry["library"])
        for entry in index
    ]


@runtime_checkable
class Codec(Protocol):
    """Reads and restores the state of a family of environments."""

    def get_state(self, env: Env) -> State:
        """The state that ``env`` is in now."""

    def set_state(self, env: Env, state: State) -> Start:
        """Start an episode of ``env`` in ``state``; returns observation and info, like ``reset()``.

        Two restores of one state give the same observation, and the same trajectory under the same actions.
        """


@cache
def installed(library: str) -> str:
    """The version of an installed library."""
    from importlib.metadata import version

    return version(library)


def goal_of(codec: Codec, state: State) -> Any:
    """The goal in a state; None if the codec names none."""
    return getattr(codec, "goal", lambda state: None)(state)


def is_made(env: Any) -> bool:
    """Whether this is an environment, not a function or class that makes one."""
    return hasattr(env, "unwrapped") and not isinstance(env, type)


def layers(env: Env) -> Iterator[Env]:
    """The wrappers from the outermost to the innermost, then the environment itself."""
    while env is not env.unwrapped:
        yield env
        env = env.env
    yield env


def restart(env: Env, restore: Callable[[], Start]) -> Start:
    """Run ``env.reset()`` with ``restore`` in place of the innermost reset.

    Every wrapper then restarts its time limit, stack or statistics and transforms the observation, as at any reset.
    """
    base = env.unwrapped
    instance_reset = vars(base).get("reset")

    def reset(*, seed: int | None = None, options: dict[str, Any] | None = None) -> Start:
        return restore()

    base.reset = reset
    try:
        observation, info = env.reset()
    finally:
        if instance_reset is None:
            del base.reset
        else:
            base.reset = instance_reset
    return observation, info
