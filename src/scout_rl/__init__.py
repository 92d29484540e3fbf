"""SCOUT: per-context reset curricula for sparse-reward reinforcement learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from scout_rl import rules
from scout_rl.cells import Cells, Event, Outcomes
from scout_rl.curriculum import Curriculum

if TYPE_CHECKING:
    from scout_rl.codecs import codec_for, verify_codec
    from scout_rl.codecs.codec import Codec, State
    from scout_rl.ladder import Ladder
    from scout_rl.ladder_validation import validate
    from scout_rl.recorder import Recorder
    from scout_rl.trajectory import Trajectory

_LAZY = {
    "Codec": "codecs.codec",
    "Ladder": "ladder",
    "Recorder": "recorder",
    "State": "codecs.codec",
    "Trajectory": "trajectory",
    "codec_for": "codecs",
    "validate": "ladder_validation",
    "verify_codec": "codecs",
}
"""Loaded when asked for: states, ladders and recorders need more than NumPy."""

__all__ = [
    "Cells",
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
