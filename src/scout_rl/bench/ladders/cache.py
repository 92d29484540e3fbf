"""Ladders on disk: built and validated once, then read back in less than a second.

A ladder is kept under a hash of everything that it depends on: the contexts, the source, the number of levels, the
library versions, the machine type and the family's own source text. A killed process leaves no half-written file; a
damaged file is noticed, reported and built again.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import family
from scout_rl.bench.families.family import Family, States
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.archive import content_hash, read_archive, write_archive
from scout_rl.files.cache import cache_folder, code_hash

Source = Literal["manual", "solver"]
LIBRARIES = ("mujoco", "gymnasium-robotics", "metaworld", "minigrid", "numpy")


def load_ladder(
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    n_levels: int | None = None,
    source: Source = "manual",
    say: Callable[[str], None] = print,
) -> States:
    """The ladder [contexts, levels, ...] of these contexts, from the cache where it is there.

    A ladder with an invalid cell is a ``ValueError`` that lists the problems, and is not kept.
    """
    levels = setting.n_levels if n_levels is None else n_levels
    return cached_ladder(
        setting,
        contexts,
        levels,
        source,
        lambda: (build_ladder(family(setting.family), contexts, levels, source, say), {}),
        say=say,
    )[0]


def cached_ladder(
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    n_levels: int,
    source: str,
    build: Callable[[], tuple[States, dict[str, Any]]],
    made_of: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> tuple[States, dict[str, Any]]:
    """What ``build`` gives, the ladder and JSON values about it; from the cache where it is there.

    ``made_of`` is whatever else it depends on, as JSON values.
    """
    key = _key(setting, contexts, n_levels, source, made_of or {})
    path = cache_folder() / "ladders" / f"{setting.key}-{source}-{n_levels}-{key}.npz"
    if path.exists():
        try:
            ladder, meta, _ = read_archive(path)
            return ladder, meta["about"]
        except ValueError as error:
            say(f"{error} The ladder is built again.")
    ladder, about = build()
    write_archive(path, ladder, {"kind": "batch ladder", "setting": setting.key, "source": source, "about": about})
    return ladder, about


def build_ladder(
    home: Family,
    contexts: Mapping[str, NDArray[Any]],
    n_levels: int,
    source: Source,
    say: Callable[[str], None] = print,
) -> States:
    """Build a ladder and validate it."""
    ladder = (home.starts if source == "manual" else home.solver_ladder)(contexts, n_levels)
    report = home.check_ladder(contexts, ladder, source)
    if not report.ok:
        raise ValueError(f"the {source} ladder is invalid: {report}")
    for warning in report.warnings:
        say(f"{source} ladder: {warning}")
    return ladder


def _key(
    setting: Setting, contexts: Mapping[str, NDArray[Any]], n_levels: int, source: str, made_of: Mapping[str, Any]
) -> str:
    meta = {
        "family": setting.family,
        "task": setting.task,
        "n_levels": n_levels,
        "source": source,
        "machine": platform.machine(),
        "libraries": library_versions(LIBRARIES),
        "code": _code(setting.family),
        "made_of": dict(made_of),
    }
    arrays = {name: np.asarray(array) for name, array in contexts.items()}
    return hashlib.sha256((content_hash(arrays, {}) + json.dumps(meta, sort_keys=True)).encode()).hexdigest()[:24]


def library_versions(names: Iterable[str]) -> dict[str, str | None]:
    """What is installed; None for what is not."""
    return {name: _version(name) for name in names}


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _code(family_key: str) -> str:
    """Hash of the source text that makes ladders: what changes there must not be read from an old file."""
    return code_hash(f"bench/families/{family_key}/*.py", "bench/families/*.py", "ladders/ladder.py")
