"""Environment families: the registry, and the bank of any setting."""

from __future__ import annotations

import importlib

from scout_rl.bench.families.family import Family
from scout_rl.bench.settings.bank import ContextBank, pinned_hashes, require_hash
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

FAMILIES = ("minigrid", "fetch", "pointmaze", "metaworld")
"""The keys of all families, which are the names of their folders."""


def family(key: str) -> Family:
    """The family of that key. It is imported on first use, since each needs its own simulator package."""
    if key not in FAMILIES:
        raise Refusal(f"no family {key!r}; the families are {', '.join(FAMILIES)}")
    with naming_extras(f"the {key} family", "" if key == "minigrid" else "bench"):
        loaded: Family = importlib.import_module(f"{__name__}.{key}").FAMILY
    return loaded


def load_bank(setting: Setting) -> ContextBank:
    """Sample the setting's bank; refuse one whose hash is not the committed one."""
    bank = family(setting.family).sample_bank(setting)
    hashes = pinned_hashes()
    if setting.key in hashes:
        require_hash(bank, hashes[setting.key], f"setting {setting.key!r}")
    return bank
