"""The versions, source and machine that made the windows of a run, as run.json says.

The top of run.json describes the first process. Its list ``continued`` holds every later process that differed, with
the first window that it made.
"""

from __future__ import annotations

from typing import Any

from scout_rl.files.refusal import Refusal

PARTS = ("versions", "source", "ran_on")
ENGINE, WIDTH, BATCH = "engine", "width", "batch"
"""In ``ran_on`` of a run that was trained in a batch (bench/run/batch.py): its engine, and how many runs were computed
together."""
ALONE: dict[str, Any] = {ENGINE: "process", WIDTH: 1}
"""What a record without them means: a process per run."""
CONTINUED, FROM = "continued", "from_window"


def makers(about: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The first window and the properties of each process; old records may lack properties."""
    return [(0, _flat(about)), *((entry[FROM], _flat(entry)) for entry in about.get(CONTINUED, []))]


def continued_by(stored: dict[str, Any], now: dict[str, Any], window: int) -> dict[str, Any]:
    """The run.json of a run that continues at ``window``; later entries go, as those windows are made again."""
    parts = {name: now[name] for name in PARTS}
    rest = {name: value for name, value in stored.items() if name != CONTINUED}
    if window == 0:
        return {**rest, **parts}
    before = [entry for entry in stored.get(CONTINUED, []) if entry[FROM] < window]
    latest = before[-1] if before else stored
    if any(latest.get(name) != parts[name] for name in PARTS):
        before.append({FROM: window, **parts})
    return {**rest, CONTINUED: before} if before else rest


def check(about: dict[str, Any]) -> None:
    """Refuse a malformed list ``continued``."""
    for entry in about.get(CONTINUED, []):
        if not isinstance(entry, dict) or not isinstance(entry.get(FROM), int):
            raise Refusal(f"its list {CONTINUED!r} has an entry without {FROM!r}")


def _flat(part: dict[str, Any]) -> dict[str, Any]:
    source = {"source": part["source"]} if "source" in part else {}
    return {**part.get("versions", {}), **source, **ALONE, **part.get("ran_on", {})}
