"""Presets of learner constants: the paper's table, and ours. All rules of a setting use the same.

``paper`` is the paper's learner table, with its constants by setting and with normalised inputs. ``tuned`` was chosen
on development seeds with the ``random`` rule. ``paper-fast`` is ``paper`` with the learning rate and the target rate of
``tuned``, for the off-policy learners. docs/settings.md lists what was tried.
"""

from __future__ import annotations

from typing import Any, Literal

from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

Preset = Literal["tuned", "paper", "paper-fast"]

_CALM = {"random_action": 0.1, "action_noise": 0.1}
_FAST = {"tau": 0.02, "learning_rate": 1e-3}

_PAPER: dict[str, dict[str, Any]] = {
    "fetch": {},
    "fetch-air": {"updates": 32},
    "pointmaze": _CALM,
    "metaworld": {},
    "minigrid": {"reward": "cost"},
}
_PAPER_FAST = {key: row if key == "minigrid" else {**row, **_FAST} for key, row in _PAPER.items()}
_TUNED: dict[str, dict[str, Any]] = {
    "fetch": {**_FAST, **_CALM, "gamma": 0.98, "updates": 128},
    "pointmaze": {**_FAST, **_CALM, "gamma": 0.995, "updates": 64, "capacity": 1_500_000},
    "metaworld": {**_FAST, "gamma": 0.98, "updates": 64, "random_action": 0.3, "random_hold": 10, "action_noise": 0.1},
    "metaworld-conflict": {
        "gamma": 0.99,
        "random_hold": 25,
        "random_each": True,
        "random_action": 0.15,
        "clip_targets": True,
    },
    "minigrid": {},
}
_OF_CRITICS = ("tau", "clip_targets")
"""Constants of SAC's critics, which contrastive RL does not have."""
PRESETS: dict[str, dict[str, dict[str, Any]]] = {"paper": _PAPER, "paper-fast": _PAPER_FAST, "tuned": _TUNED}
"""By preset, then by family or setting; a setting's row overrides its family's."""


def preset_constants(setting: Setting, algorithm: str, preset: str) -> dict[str, Any]:
    """The constants that a preset changes for this setting, without those that the learner does not have."""
    if preset not in PRESETS:
        raise Refusal(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    table = PRESETS[preset]
    key = setting.key.partition("@")[0].removesuffix("-small")
    constants = {**table.get(setting.family, {}), **table.get(key, {})}
    if algorithm == "contrastive":
        constants = {name: value for name, value in constants.items() if name not in _OF_CRITICS}
    return constants
