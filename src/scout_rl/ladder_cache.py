"""Ladders on disk: built and validated once, then read back in less than a second.

A ladder is kept under a hash of everything that it depends on: the contexts, the source, the number of levels, the
library versions, the machine type and the family's own source text. A killed process leaves no half-written file; a
damaged file is noticed, reported and built again.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scout_rl.archive import content_hash, read_archive, write_archive
from scout_rl.cache import cache_folder
from scout_rl.families import family
from scout_rl.families.family import Family, States
from scout_rl.settings import Setting

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
    n_levels = setting.n_levels if n_levels is None else n_levels
    path = (
        cache_folder()
        / "ladders"
        / f"{setting.key}-{source}-{n_levels}-{_key(setting, contexts, n_levels, source)}.npz"
    )
    if path.exists():
        try:
            return read_archive(path)[0]
        except ValueError as error:
            say(f"{error} The ladder is built again.")
    ladder = build_ladder(family(setting.family), contexts, n_levels, source, say)
    write_archive(path, ladder, {"kind": "batch ladder", "setting": setting.key, "source": source})
    return ladder


def build_ladder(
    home: Family,
    contexts: Mapping[str, NDArray[Any]],
    n_levels: int,
    source: Source,
    say: Callable[[str], None] = print,
) -> States:
    """Build a ladder and validate it, where the family says how."""
    ladder = (home.starts if source == "manual" else home.solver_ladder)(contexts, n_levels)
    check = getattr(home, "check_ladder", None)
    if check is not None:
        report = check(contexts, ladder, source)
        if not report.ok:
            raise ValueError(f"the {source} ladder is invalid: {report}")
        for warning in report.warnings:
            say(f"{source} ladder: {warning}")
    return ladder


def _key(setting: Setting, contexts: Mapping[str, NDArray[Any]], n_levels: int, source: str) -> str:
    meta = {
        "family": setting.family,
        "task": setting.task,
        "n_levels": n_levels,
        "source": source,
        "machine": platform.machine(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "code": _code(setting.family),
    }
    arrays = {name: np.asarray(array) for name, array in contexts.items()}
    return hashlib.sha256((content_hash(arrays, {}) + json.dumps(meta, sort_keys=True)).encode()).hexdigest()[:24]


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _code(family_key: str) -> str:
    """Hash of the source text that makes ladders: what changes there must not be read from an old file."""
    root = Path(__file__).parent
    files = [*(root / "families" / family_key).glob("*.py"), *(root / "families").glob("*.py"), root / "ladder.py"]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
