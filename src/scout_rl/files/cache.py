"""The cache of compiled functions and ladders, and what these depend on: our source, and versions of libraries."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path


def cache_folder() -> Path:
    """``SCOUT_CACHE``, or ``scout-rl`` in the user's cache folder."""
    if folder := os.environ.get("SCOUT_CACHE"):
        return Path(folder)
    user_cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_cache) if user_cache else Path.home() / ".cache") / "scout-rl"


def use_compilation_cache() -> None:
    """Let JAX keep what it compiles, so that a restart or a second seed starts in seconds."""
    import jax

    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    versions = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def code_hash(*patterns: str) -> str:
    """Hash of the package's files that match the patterns; each pattern must match some file."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    files = {pattern: list(root.glob(pattern)) for pattern in patterns}
    for pattern, matched in files.items():
        if not matched:
            raise LookupError(f"no file of the package fits {pattern!r}")
    for file in sorted(file for matched in files.values() for file in matched):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
