"""Environment families: the registry, and the bank of any setting."""

from __future__ import annotations

import importlib

from scout_rl.bench.families.family import Family
from scout_rl.bench.settings.bank import ContextBank, pinned_hashes, require_hash
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

_MODULES = {
    "minigrid": ("scout_rl.bench.families.minigrid", "minigrid,jax"),
    "fetch": ("scout_rl.bench.families.fetch", "mujoco"),
    "pointmaze": ("scout_rl.bench.families.pointmaze", "mujoco"),
    "metaworld": ("scout_rl.bench.families.metaworld", "mujoco"),
}
"""Where each family lives, and the extras that it needs."""

FAMILIES = tuple(_MODULES)
"""The keys of all families."""


def family(key: str) -> Family:
    """The family of that key. It is imported on first use, since each needs its own simulator package."""
    if key not in _MODULES:
        raise Refusal(f"no family {key!r}; the families are {', '.join(FAMILIES)}")
    module, extras = _MODULES[key]
    try:
        loaded: Family = importlib.import_module(module).FAMILY
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the {key} family needs the package {error.name!r}: pip install 'scout-rl[{extras}]'",
            name=error.name,
        ) from error
    return loaded


def load_bank(setting: Setting) -> ContextBank:
    """Sample the setting's bank; refuse one whose hash is not the committed one."""
    bank = family(setting.family).sample_bank(setting)
    hashes = pinned_hashes()
    if setting.key in hashes:
        require_hash(bank, hashes[setting.key], f"setting {setting.key!r}")
    return bank
