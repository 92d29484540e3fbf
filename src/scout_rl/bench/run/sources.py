"""The runs that a policy ladder is taken from, by their names below the folder of runs.

A config keeps its sources as paths. The folder of runs may be spelled in another way or be moved, and a run in it is
still the same run: its name says all of its config.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from scout_rl.records.stored import SOURCES


def tidy(out: str) -> str:
    """One spelling of a folder or URL of runs: ``runs/`` and ``./runs`` are ``runs``."""
    return out.rstrip("/") if "://" in out else os.path.normpath(out)


def name_below(out: str, path: str) -> str | None:
    """The name of the run at ``path`` below the folder of runs; None where it is elsewhere."""
    if not path or "://" in out:
        return None
    below = os.path.relpath(path, out)
    return None if below.startswith(os.pardir) else PurePath(below).as_posix()


def respelled(there: dict[str, Any], here: dict[str, Any], out: str) -> dict[str, Any]:
    """A stored config with its sources spelled as ``here``, where both mean the same run below the folder of runs."""
    return {**there, **{field: here[field] for field in SOURCES if _same(there.get(field), here.get(field), out)}}


def as_begun(config: dict[str, Any], there: dict[str, Any], out: str) -> dict[str, Any]:
    """A config with its sources spelled as in the stored one, where both mean the same runs."""
    return {**config, **{field: there[field] for field in SOURCES if _same(there.get(field), config.get(field), out)}}


def _same(there: Any, here: Any, out: str) -> bool:
    if not (isinstance(there, str) and isinstance(here, str) and there and here):
        return False
    if os.path.normpath(there) == os.path.normpath(here):
        return True
    name = name_below(out, here)
    if name is None:
        return False
    parts = PurePath(name).parts
    return PurePath(os.path.normpath(there)).parts[-len(parts) :] == parts
