"""Many states in one file, each distinct array once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scout_rl.codecs.codec import State
from scout_rl.files.archive import Array, content_hash


def pack_states(states: Sequence[State]) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """The distinct arrays, and per state its metadata with the key of each array."""
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
