"""The source runs of a policy ladder, compared by their names below the folder of runs.

A config holds its sources as paths. The folder of runs may be written differently or be moved; a source with the same
name is still the same run, as its name contains its config.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from scout_rl.records.stored import SOURCES


def normalised(out: str) -> str:
    """The normal form of a folder or URL of runs: ``runs/`` and ``./runs`` become ``runs``."""
    return out.rstrip("/") if "://" in out else os.path.normpath(out)


def name_below(out: str, path: str) -> str | None:
    """The name of the run at ``path`` below the folder of runs; None if it is elsewhere."""
    if not path or "://" in out:
        return None
    below = os.path.relpath(path, out)
    return None if below.startswith(os.pardir) else PurePath(below).as_posix()


def with_stored_sources(current: dict[str, Any], stored: dict[str, Any], out: str) -> dict[str, Any]:
    """The current config with the source paths of ``stored``, where both mean the same run."""
    same = {field: stored[field] for field in SOURCES if _same_run(stored.get(field), current.get(field), out)}
    return {**current, **same}


def _same_run(stored: Any, current: Any, out: str) -> bool:
    if not (isinstance(stored, str) and isinstance(current, str) and stored and current):
        return False
    if os.path.normpath(stored) == os.path.normpath(current):
        return True
    name = name_below(out, current)
    if name is None:
        return False
    parts = PurePath(name).parts
    return PurePath(os.path.normpath(stored)).parts[-len(parts) :] == parts
