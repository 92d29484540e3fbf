"""SCOUT: per-context reset curricula for sparse-reward reinforcement learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

from scout_rl import rules
from scout_rl.curriculum import Curriculum
from scout_rl.rules.cells import Cells, Chance, Event, Outcomes

if TYPE_CHECKING:
    from scout_rl.codecs import codec_for, verify_codec
    from scout_rl.codecs.codec import Codec, State
    from scout_rl.ladders.ladder import Ladder
    from scout_rl.ladders.recorder import Recorder
    from scout_rl.ladders.trajectory import Trajectory
    from scout_rl.ladders.validate import validate

_LAZY = {
    "Codec": "codecs.codec",
    "Ladder": "ladders.ladder",
    "Recorder": "ladders.recorder",
    "State": "codecs.codec",
    "Trajectory": "ladders.trajectory",
    "codec_for": "codecs",
    "validate": "ladders.validate",
    "verify_codec": "codecs",
}
"""Loaded when asked for: states, ladders and recorders need more than NumPy."""

__all__ = [
    "Cells",
    "Chance",
    "Codec",
    "Curriculum",
    "Event",
    "Ladder",
    "Outcomes",
    "Recorder",
    "State",
    "Trajectory",
    "__version__",
    "codec_for",
    "rules",
    "validate",
    "verify_codec",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'scout_rl' has no attribute {name!r}")
    return getattr(importlib.import_module(f"scout_rl.{_LAZY[name]}"), name)
