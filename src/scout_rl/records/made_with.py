"""What made the windows of a run: versions, source and machine, as run.json says; of a continued run, window by window.

The first process stands in run.json itself; every later one that was not the same in all of it stands in its list
``continued``, with the first window that it made.
"""

from __future__ import annotations

from typing import Any

PARTS = ("versions", "source", "ran_on")
CONTINUED, FROM = "continued", "from_window"


def makers(about: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The first window of each maker, and what it was, by name; what an old record does not say is left out."""
    return [(0, _flat(about)), *((entry[FROM], _flat(entry)) for entry in about.get(CONTINUED, []))]


def noted(there: dict[str, Any], now: dict[str, Any], window: int) -> dict[str, Any]:
    """The run.json of a run that goes on at ``window``: whoever made what comes from there on, it is made again now."""
    made = {name: now[name] for name in PARTS}
    rest = {name: value for name, value in there.items() if name != CONTINUED}
    if window == 0:
        return {**rest, **made}
    before = [entry for entry in there.get(CONTINUED, []) if entry[FROM] < window]
    latest = before[-1] if before else there
    if any(latest.get(name) != made[name] for name in PARTS):
        before.append({FROM: window, **made})
    return {**rest, CONTINUED: before} if before else rest


def check(about: dict[str, Any]) -> None:
    """Refuse a list that says something else."""
    for entry in about.get(CONTINUED, []):
        if not isinstance(entry, dict) or not isinstance(entry.get(FROM), int):
            raise ValueError(f"its list {CONTINUED!r} has an entry without {FROM!r}")


def _flat(part: dict[str, Any]) -> dict[str, Any]:
    source = {"source": part["source"]} if "source" in part else {}
    return {**part.get("versions", {}), **source, **part.get("ran_on", {})}
