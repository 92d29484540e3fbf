"""Where a run goes below its folder of runs, and its compact record below `results/`: what varies is in its name."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from pathlib import Path
from typing import Any

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import setting

LONGEST = 120
UNNAMED = {"setting", "rule", "seed", "ladder", "levels", "checkpoint_every", "ladder_from", "ladder_fallback"}
"""Fields that stand elsewhere in the name, or in none: how often a run is saved, and which runs its ladder is from."""


def run_name(config: RunConfig) -> str:
    """``SETTING/RULE/SEED``, then everything that is not the default: ``doorkey/scout/100-solver9-N_stale8``."""
    parts = [str(config.seed)]
    if config.ladder != "manual" or config.levels != setting(config.setting).n_levels:
        parts.append(f"{config.ladder}{config.levels}")
    changed = "-".join(_changes(config))
    if changed:
        parts.append(changed if len(changed) <= LONGEST else hashlib.sha256(changed.encode()).hexdigest()[:16])
    return f"{config.setting}/{config.rule}/{'-'.join(parts)}"


def run_path(out: Path, config: RunConfig) -> Path:
    """The run's folder below ``out``."""
    return out / run_name(config)


def _changes(config: RunConfig) -> list[str]:
    plain = RunConfig(setting=config.setting, rule=config.rule)
    usual = dataclasses.replace(config, constants={}, learner={})  # what this budget and learner would take
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
    """A value in characters that every file system and shell takes."""
    if isinstance(value, list | tuple):
        return "_".join(_plain(item) for item in value)
    return re.sub(r"[^A-Za-z0-9._]", "_", str(value))
