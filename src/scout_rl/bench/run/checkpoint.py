"""Checkpoints of a run: immutable folders, of which the newest two are kept. Loading executes no code.

    checkpoints/000120/manifest.json   window, config hash, the SHA-256 of every other file and of the manifest itself
    checkpoints/000120/*.npz           named arrays
    checkpoints/shared/*.npz           files that several checkpoints use, such as the replay's segments

A folder is written under another name and renamed when every byte of it is on disk. A folder with a wrong hash is
skipped, with a message, for the one before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl.files.archive import pack, unpack
from scout_rl.files.atomic import sync, write_bytes
from scout_rl.files.damage import DAMAGE, error_text
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape

SCHEMA = 1
KEPT = 2
SHARED = "shared"
MANIFEST = {
    "window": int,
    "identity": str,
    "files": {...: str},
    "shared": {...: str},
    "meta": {"curriculum": {}, "environment_steps": int},
}
Arrays = Mapping[str, Any]


class Checkpoint(NamedTuple):
    """One checkpoint, read and verified."""

    window: int
    parts: dict[str, dict[str, Any]]
    """Named arrays by part (``learner``, ``curriculum``)."""
    meta: dict[str, Any]
    """JSON values."""
    shared: dict[str, dict[str, Any]]
    """Named arrays of the shared files, in their order."""
    hashes: dict[str, str]
    """Hashes of the shared files; ``write`` takes them as ``kept``."""


def write(
    folder: Path,
    window: int,
    identity: str,
    parts: Mapping[str, Arrays],
    meta: dict[str, Any],
    *,
    new: Mapping[str, Arrays] | None = None,
    kept: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Write the checkpoint of ``window``, then delete all but the newest two, and the shared files that neither uses.

    ``new`` are shared files to write now, ``kept`` the hashes of earlier ones that this checkpoint also needs. Returns
    the hashes of both: the next checkpoint's ``kept``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shared = dict(kept or {})
    for name, arrays in (new or {}).items():
        shared[name] = _write_arrays(folder / SHARED / f"{name}.npz", arrays)
    final = folder / f"{window:08d}"
    partial = folder / f"{window:08d}.partial"
    for leftover in (partial, final):
        if leftover.exists():
            shutil.rmtree(leftover)
    partial.mkdir()
    hashes = {f"{name}.npz": _write_arrays(partial / f"{name}.npz", arrays) for name, arrays in parts.items()}
    manifest = {
        "schema": SCHEMA,
        "window": window,
        "identity": identity,
        "files": hashes,
        "shared": shared,
        "meta": meta,
    }
    content = json.dumps({"sha256": _sha256(manifest), **manifest}).encode()
    write_bytes(partial / "manifest.json", content, durable=True)
    sync([partial])
    os.rename(partial, final)
    sync([folder])
    for old in _folders(folder)[:-KEPT]:
        shutil.rmtree(old)
    _delete_unused(folder)
    return shared


def newest(folder: Path, identity: str, say: Callable[[str], None], *, with_shared: bool = True) -> Checkpoint | None:
    """The newest whole checkpoint; ``say`` gets a sentence about every damaged one.

    A policy does not need the shared files: without ``with_shared`` they are neither read nor checked.
    """
    return next(whole(folder, identity, say, with_shared=with_shared), None)


def whole(folder: Path, identity: str, say: Callable[[str], None], *, with_shared: bool = True) -> Iterator[Checkpoint]:
    """Every whole checkpoint, the newest first."""
    for path in reversed(_folders(folder)):
        try:
            yield _read(path, identity, with_shared)
        except _DamagedError as damage:
            say(f"checkpoint {path} is damaged ({damage}); falling back to the one before it")


def saved_windows(folder: Path) -> list[int]:
    """The windows of all checkpoints, whole or not."""
    return [int(path.name) for path in _folders(folder)]


def at(folder: Path, window: int, identity: str, *, with_shared: bool = True) -> Checkpoint:
    """The checkpoint of that window; refuse a missing or damaged one."""
    folders = {int(path.name): path for path in _folders(folder)}
    if window not in folders:
        stored = ", ".join(map(str, folders)) or "none"
        raise Refusal(f"{folder} has no checkpoint of window {window}; it has {stored}")
    try:
        return _read(folders[window], identity, with_shared)
    except _DamagedError as damage:
        raise Refusal(f"checkpoint {folders[window]} is damaged ({damage})") from damage


class _DamagedError(Exception):
    """A checkpoint has wrong bytes."""


def _read(path: Path, identity: str, with_shared: bool) -> Checkpoint:
    manifest = _manifest(path)
    if manifest["identity"] != identity:
        raise Refusal(f"checkpoint {path} is of another config than the run's own config.json")
    parts = {name.removesuffix(".npz"): _arrays(path / name, sha) for name, sha in manifest["files"].items()}
    wanted = manifest["shared"] if with_shared else {}
    shared = {name: _arrays(path.parent / SHARED / f"{name}.npz", sha) for name, sha in wanted.items()}
    return Checkpoint(manifest["window"], parts, manifest["meta"], shared, manifest["shared"])


def _manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint's folder; earlier versions wrote no hash of it."""
    try:
        manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text("utf-8"))
        require_shape(manifest, MANIFEST)
        if manifest.pop("sha256", None) not in (None, _sha256(manifest)):
            raise Refusal("it does not have its hash")
        schema = manifest["schema"]
        if schema == SCHEMA:
            return {"shared": {}, **{name: manifest[name] for name in MANIFEST if name != "shared" or name in manifest}}
    except DAMAGE as error:
        raise _DamagedError(f"manifest.json: {error_text(error)}") from error
    raise Refusal(f"checkpoint {path} has schema {schema!r}, this version reads {SCHEMA}")


def _sha256(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def _write_arrays(path: Path, arrays: Arrays) -> str:
    """Write a file of named arrays; returns its hash."""
    data = pack(arrays, compressed=False)
    write_bytes(path, data, durable=True)
    return hashlib.sha256(data).hexdigest()


def _arrays(path: Path, expected: str) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _DamagedError(f"{path.name}: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise _DamagedError(f"{path.name} does not have its hash")
    return unpack(data)[0]


def _delete_unused(folder: Path) -> None:
    """Delete shared files that no checkpoint uses; delete none if a manifest cannot be read."""
    try:
        named = {f"{name}.npz" for path in _folders(folder) for name in _manifest(path)["shared"]}
    except (_DamagedError, ValueError):
        return
    for path in (folder / SHARED).glob("*"):
        if path.name not in named:
            path.unlink()


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())
