"""The name of a run: its path below the folder of runs, and of its compact record below `results/`."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import setting

LONGEST = 120
UNNAMED = {"setting", "rule", "seed", "ladder", "levels", "checkpoint_every", "ladder_from", "ladder_fallback"}
"""Fields that `run_name` adds itself, or that are not part of the name."""


def run_name(config: RunConfig) -> str:
    """``SETTING/RULE/SEED`` and everything that is not the default: ``doorkey/scout/100-solver9-N_stale8``."""
    parts = [str(config.seed)]
    if config.ladder != "manual" or config.levels != setting(config.setting).n_levels:
        parts.append(f"{config.ladder}{config.levels}")
    changed = "-".join(_changes(config))
    if changed:
        parts.append(changed if len(changed) <= LONGEST else hashlib.sha256(changed.encode()).hexdigest()[:16])
    return f"{config.setting}/{config.rule}/{'-'.join(parts)}"


def _changes(config: RunConfig) -> list[str]:
    plain = RunConfig(setting=config.setting, rule=config.rule)
    usual = dataclasses.replace(config, constants={}, learner={})  # the constants of this budget and learner by default
    named = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, dict):
            standard = getattr(usual, field.name)
            named += [f"{name}{_plain(v)}" for name, v in value.items() if v != standard.get(name)]
        elif field.name not in UNNAMED and value != getattr(plain, field.name):
            named.append(_plain(value) if isinstance(value, str) else f"{field.name}{_plain(value)}")
    return named


def _plain(value: Any) -> str:
    """A value in characters that are safe in file names and shells."""
    if isinstance(value, list | tuple):
        return "_".join(_plain(item) for item in value)
    return re.sub(r"[^A-Za-z0-9._]", "_", str(value))
