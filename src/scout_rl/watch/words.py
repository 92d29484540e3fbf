"""Events of a run as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOVED = {
    "advance": "Context {context} advanced from level {from_level} to level {to_level}",
    "retreat": "Context {context} retreated from level {from_level} to level {to_level}",
    "antistall": "Context {context} stalled at level {from_level}, so level {to_level} is tried",
}


def move(event: Mapping[str, Any]) -> dict[str, Any]:
    """A row of events.jsonl as the page's EVENT."""
    what = MOVED.get(event["kind"], "Context {context}: {kind}").format_map(event)
    basis = ""
    if event.get("success_average") is not None:
        basis = f": success {event['success_average']:.2f}, {event['evidence']:.0f} outcomes"
    return {**event, "text": f"{what}{basis}."}


def evaluation(window: int, groups: Mapping[str, float]) -> dict[str, Any]:
    """A held-out evaluation as the page's EVENT."""
    return {"window": window, "kind": "evaluation", "text": f"Held-out success after {window} windows: {each(groups)}."}


def each(groups: Mapping[str, float]) -> str:
    """Success by group: ``easy 0.60, hard 0.00``."""
    return ", ".join(f"{name} {value:.2f}" for name, value in groups.items())
