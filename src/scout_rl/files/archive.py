"""Named arrays and JSON in one npz file, without pickle: loading never executes code.

`pack` and `unpack` are the format of all our npz files except the banks. An archive is such a file with a content
hash: states, trajectories and ladders.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.atomic import write_bytes
from scout_rl.files.damage import DAMAGE, error_text
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape

Array = NDArray[Any]

META = "__meta__"
"""The entry that holds the JSON part, as bytes."""


WRONG_BYTES = (
    ValueError, LookupError, TypeError, OSError, EOFError, NotImplementedError, SyntaxError, RuntimeError, MemoryError,
    OverflowError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Raised by zipfile and NumPy on wrong bytes, such as a false encryption flag, version or header."""


def content_hash(arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> str:
    """SHA-256 over names, types, shapes and bytes of the arrays and over the JSON part."""
    digest = hashlib.sha256(_json_bytes(meta))
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def pack(arrays: Mapping[str, Any], entry: str = "", value: object = None, *, compressed: bool = True) -> bytes:
    """The content of an npz file: the arrays, and a JSON value under the name ``entry``."""
    entries = {entry: np.frombuffer(json.dumps(value).encode(), np.uint8)} if entry else {}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, values in {**entries, **arrays}.items():
            array = np.asarray(values)
            if array.dtype.hasobject:
                raise Refusal(f"array {name!r} holds Python objects, which cannot be saved without pickle.")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return file.getvalue()


def unpack(content: bytes, entry: str = "") -> tuple[dict[str, Array], Any]:
    """The arrays and the JSON value that `pack` stored; wrong bytes are refused."""
    arrays = {}
    with _opened(content) as file:
        for name in file.namelist():
            with file.open(name) as member:
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    return arrays, json.loads(arrays.pop(entry).tobytes()) if entry else None


def has_entry(content: bytes, entry: str) -> bool:
    """Whether `pack` stored a value under this name."""
    with _opened(content) as file:
        return f"{entry}.npy" in file.namelist()


@contextmanager
def _opened(content: bytes) -> Iterator[zipfile.ZipFile]:
    """The zip file. Call only zipfile and NumPy in this block: every error in it counts as wrong bytes."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise Refusal("it is not a zip file")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            yield file
    except WRONG_BYTES as error:
        pickled = "allow_pickle" in str(error)  # NumPy advises to allow what we never load
        raise Refusal("it holds Python objects, not plain arrays" if pickled else error_text(error)) from error


def archive_bytes(arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> tuple[bytes, str]:
    """The content of an archive and its hash."""
    sha256 = content_hash(arrays, meta)
    return pack(arrays, META, {"meta": dict(meta), "sha256": sha256}), sha256


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, Array], meta: Mapping[str, Any]) -> str:
    """Write an archive; returns the hash."""
    content, sha256 = archive_bytes(arrays, meta)
    write_bytes(path, content)
    return sha256


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any], str]:
    """The arrays, the JSON part and the hash of a file; refuse a damaged one."""
    return parse_archive(Path(path).read_bytes(), str(path))


def parse_archive(content: bytes, name: str) -> tuple[dict[str, Array], dict[str, Any], str]:
    """As `read_archive`, from the file's content; errors call the file ``name``."""
    try:
        arrays, envelope = unpack(content, META)
        require_shape(envelope, {"meta": {}, "sha256": str})
        meta, sha256 = envelope["meta"], envelope["sha256"]
    except DAMAGE as error:
        raise Refusal(f"{name} is damaged, or no file of ours: {error_text(error)}") from error
    if content_hash(arrays, meta) != sha256:
        raise Refusal(f"{name} is damaged: its content does not match its hash {str(sha256)[:12]}.")
    return arrays, meta, sha256


def pack_json(value: object) -> Array:
    """A JSON value as a uint8 array."""
    return np.frombuffer(_json_bytes(value), dtype=np.uint8).copy()


def unpack_json(array: Array) -> Any:
    """The value that `pack_json` packed."""
    return json.loads(np.asarray(array, dtype=np.uint8).tobytes())


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
