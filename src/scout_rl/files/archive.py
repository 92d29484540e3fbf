"""Named arrays and JSON in one npz file, without pickle, under a content hash.

States, trajectories and ladders all live in such files. Loading never executes code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.damage import DAMAGE, told

Array = NDArray[Any]

META = "__meta__"
"""The entry that holds the JSON part, as bytes."""


def content_hash(arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> str:
    """SHA-256 over names, types, shapes and bytes of the arrays and over the JSON part."""
    digest = hashlib.sha256(_json_bytes(meta))
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def archive_bytes(arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> tuple[bytes, str]:
    """The file's content and its hash."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"array {name!r} holds Python objects, which cannot be saved without pickle.")
    sha256 = content_hash(arrays, meta)
    payload = _json_bytes({"sha256": sha256, "meta": dict(meta)})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, META, np.frombuffer(payload, dtype=np.uint8))
        for name, array in arrays.items():
            _put(archive, name, np.asarray(array))
    return file.getvalue(), sha256


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> str:
    """Write the file in one move, so that a killed process leaves none or a whole one; returns the hash."""
    content, sha256 = archive_bytes(arrays, meta)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return sha256


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any], str]:
    """The arrays, the JSON part and the hash of a file; a damaged one is a ``ValueError`` of one sentence."""
    return parse_archive(Path(path).read_bytes(), str(path))


def parse_archive(content: bytes, name: str) -> tuple[dict[str, Array], dict[str, Any], str]:
    """As :func:`read_archive`, from the file's content; ``name`` is what an error calls it."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        envelope = json.loads(arrays.pop(META).tobytes())
        meta, sha256 = envelope["meta"], envelope["sha256"]
    except DAMAGE as error:
        raise ValueError(f"{name} is damaged, or no file of ours: {told(error)}") from error
    if content_hash(arrays, meta) != sha256:
        raise ValueError(f"{name} is damaged: its content does not match its hash {str(sha256)[:12]}.")
    return arrays, meta, sha256


def pack_json(value: object) -> Array:
    """A JSON value as a uint8 array."""
    return np.frombuffer(_json_bytes(value), dtype=np.uint8).copy()


def unpack_json(array: Array) -> Any:
    """The value that :func:`pack_json` packed."""
    return json.loads(np.asarray(array, dtype=np.uint8).tobytes())


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _put(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
