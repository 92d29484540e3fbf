"""The files of a run folder or a ``log_dir``, read: what is wrong with one is a sentence that names it.

Light enough for the report: nothing in here needs a simulator or a learner.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scout_rl.files.damage import DAMAGE, reading
from scout_rl.records import made_with
from scout_rl.records.tables import CONFIG, EVENTS, WINDOWS, Records, read_records, read_rows

SCHEMA = 1
RUN = "run.json"
FIELDS = {"setting": str, "rule": str, "seed": int, "levels": int, "windows": int}
"""Of a run's config: what every reader needs."""
SOURCES = ("ladder_from", "ladder_fallback")
"""Of a run's config: the folders of other runs, where a policy ladder comes from."""


def read_run(folder: Path) -> dict[str, Any]:
    """What the folder's run.json says, or a sentence."""
    path = folder / RUN
    if not path.exists():
        raise ValueError(f"{folder} is no run folder: there is no {RUN} in it")
    with reading(path):
        about = read_json(path)
        if about.get("schema") != SCHEMA:
            raise ValueError(f"{path} has schema {about.get('schema')!r}, this version reads {SCHEMA}")
        check_run(about)
    return about


def check_run(about: dict[str, Any]) -> None:
    """Refuse what run.json says of a run where its config lacks a field or has another type in it."""
    for name, kind in FIELDS.items():
        value = about["config"][name]
        if not isinstance(value, kind):
            raise ValueError(f"its config has {name} {value!r}")
    labels = about.get("groups")
    if labels is not None and not (
        all(isinstance(label, str) for side in ("train", "held_out") for label in labels[side])
        and [type(label) for label in labels["oracle"]] == [int] * len(labels["train"])
    ):
        raise ValueError("its groups are not a name for every context, and a number for every training context")
    made_with.check(about)


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object."""
    with reading(path):
        found = json.loads(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it holds no JSON object")
    return found


def read_table(path: Path) -> list[dict[str, Any]]:
    """Every complete row of a table."""
    with reading(path):
        rows = read_rows(path)
        for i, row in enumerate(rows):
            if not isinstance(row, dict):
                raise ValueError(f"row {i + 1} is no JSON object")
    return rows


def read_curriculum(folder: Path) -> Records:
    """The curriculum's own records; which file is at fault is looked for only when one is."""
    with reading(folder):
        try:
            return read_records(folder)
        except DAMAGE:
            if (folder / CONFIG).exists():
                read_json(folder / CONFIG)
            for name in (WINDOWS, EVENTS):
                read_table(folder / name)
            raise
