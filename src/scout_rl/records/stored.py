"""Readers for the files of a run folder or a ``log_dir``. Errors name the file.

The report uses them: nothing here needs a simulator or a learner.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records import made_with
from scout_rl.records.tables import CONFIG, CONFIG_SHAPE, Records, read_records
from scout_rl.records.tables import read_rows as read_table

__all__ = ["RUN", "SOURCES", "check_run", "read_curriculum", "read_json", "read_run", "read_table"]

SCHEMA = 1
RUN = "run.json"
FIELDS = {"setting": str, "rule": str, "seed": int, "levels": int, "windows": int}
"""Fields of a run's config that every reader needs."""
RUN_SHAPE: dict[str, Any] = {
    "config": {
        **dict.fromkeys(("episodes", "evaluate_every", "checkpoint_every"), int),
        **dict.fromkeys(("ladder", "ladder_from", "ladder_fallback", "algorithm", "preset"), str | None),
        "constants": {},
        "learner": {},
    },
    "bank_sha256": str,
    "versions": {...: str},
    "source": str,
    "ran_on": {},
    "groups": {"train": [str], "held_out": [str], "oracle": [int]},
    "cells_from": str,
    "continued": [{"versions": {...: str}, "source": str, "ran_on": {}}],
}
LADDER = "ladder.json"
LADDER_SHAPE = {"sha256": str, "bootstrap_fraction": float}
SOURCES = ("ladder_from", "ladder_fallback")
"""Fields of a run's config: the folders of the runs that a policy ladder comes from."""


def read_run(folder: Path) -> dict[str, Any]:
    """The folder's run.json, checked."""
    path = folder / RUN
    if not path.exists():
        raise Refusal(f"{folder} is no run folder: there is no {RUN} in it")
    with reading(path):
        about = read_json(path)
        if about.get("schema") != SCHEMA:
            raise Refusal(f"{path} has schema {about.get('schema')!r}, this version reads {SCHEMA}")
        check_run(about)
    return about


def check_run(about: dict[str, Any]) -> None:
    """Refuse the content of a run.json whose config lacks a field or has a wrong type."""
    require_shape(about, RUN_SHAPE)
    for name, kind in FIELDS.items():
        value = about["config"][name]
        if not isinstance(value, kind):
            raise Refusal(f"its config has {name} {value!r}")
    labels = about.get("groups")
    if labels is not None and len(labels["oracle"]) != len(labels["train"]):
        raise Refusal("its groups are not a name for every context, and a number for every training context")
    made_with.check(about)


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object."""
    with reading(path):
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
        require_shape(value, {CONFIG: CONFIG_SHAPE, LADDER: LADDER_SHAPE}.get(path.name, {}))
    return value


def read_curriculum(folder: Path) -> Records:
    """The curriculum's records."""
    with reading(folder):
        return read_records(folder)
