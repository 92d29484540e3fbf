"""From records of any kind (run folders, compact records, anyone's ``log_dir``) to the one value, `RunRecord`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.archive import has_entry
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import unpack
from scout_rl.records.evaluations import read_evaluations
from scout_rl.records.stored import LADDER, RUN, read_curriculum, read_json, read_run, read_table
from scout_rl.records.tables import CONFIG, KINDS, WINDOWS, Records
from scout_rl.report.read.catalogue import Catalogue
from scout_rl.report.read.run import About, Moves, Rollouts, RunRecord
from scout_rl.rules.cells import Event

NO_CATALOGUE: Catalogue = MappingProxyType({})
Labels = tuple[tuple[str, ...], NDArray[np.int64]]
"""Group names, and an index into them per training context."""


def find(paths: Sequence[Path]) -> list[Path]:
    """Every record at or below the paths, in order. A path without a record is refused."""
    records: dict[Path, None] = {}
    for path in paths:
        below = list(_below(path))
        if not below:
            raise Refusal(f"{path} holds no records: no run folder, no log_dir and no compact record in it")
        records.update(dict.fromkeys(below))
    return list(records)


def load(path: Path, *, groups: Path | None = None, catalogue: Catalogue = NO_CATALOGUE) -> RunRecord:
    """Read one record of any kind. A file of ``groups`` (`read_labels`) replaces its labels."""
    with reading(path):
        read = _compact if not path.is_dir() else _folder if (path / RUN).exists() else _log_dir
        run = read(path)
    run = replace(run, about=replace(run.about, known=catalogue.get(run.about.setting)))
    if groups is None or not run.about.windows:
        return run
    names, indices = read_labels(groups, run.about.n_contexts)
    return replace(run, groups=names, context_group=indices)


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, names, files in os.walk(path):
        if RUN in files or CONFIG in files:
            names.clear()  # do not look inside a run folder
            yield Path(folder)
            continue
        names.sort()
        archives = (Path(folder) / name for name in sorted(files) if name.endswith(".npz"))
        yield from (path for path in archives if _is_record(path))


def _is_record(path: Path) -> bool:
    with reading(path):
        return has_entry(path.read_bytes(), "about.json")


def _compact(path: Path) -> RunRecord:
    compact = unpack(path)
    windows, rollouts = compact.context.shape
    n_contexts = _n_labelled(compact.about) or int(compact.context.max()) + 1
    if compact.frontier is not None:
        n_contexts = compact.frontier.shape[1]
    window, context, kind = compact.moves.T
    left = np.zeros(0, np.int8)
    if compact.frontier is not None:
        easiest = int(compact.about["config"]["levels"]) - 1
        left = np.where(window > 0, compact.frontier[np.maximum(window - 1, 0), context], easiest).astype(np.int8)
    return assembled(
        path,
        "compact",
        compact.about,
        n_contexts,
        windows,
        ladder=compact.ladder,
        rollouts=Rollouts(
            np.repeat(np.arange(windows, dtype=np.int32), rollouts),
            compact.context.reshape(-1).astype(np.int32),
            compact.level.reshape(-1),
            compact.success.reshape(-1),
        ),
        frontier=compact.frontier,
        moves=Moves(window, context, kind.astype(np.int8), left),
        evaluated_at=compact.evaluated_at.astype(np.int64),
        held_out=compact.outcomes.mean(axis=1),
        held_out_groups=compact.groups,
        steps_at=compact.environment_steps,
        seconds_at=np.linspace(compact.seconds / windows, compact.seconds, windows),
    )


def _folder(path: Path) -> RunRecord:
    description = read_run(path)
    if not (path / CONFIG).exists() and not (path / WINDOWS).exists():
        # no curriculum yet: its ladder is still being built
        empty: dict[str, Any] = {"rollouts": _rollouts([]), "frontier": None, "moves": _event_moves([], 0)}
        return assembled(path, "folder", description, _n_labelled(description), 0, **empty)
    records = read_curriculum(path)
    windows = len(records.windows)
    metrics, timing = (read_table(path / f"{name}.jsonl") for name in ("metrics", "timing"))
    return _of_curriculum(
        path,
        "folder",
        description,
        records,
        read_evaluations(path, description, min(windows, len(timing))),
        ladder=read_json(path / LADDER) if (path / LADDER).exists() else None,
        steps_at=np.array([row["environment_steps"] for row in metrics][:windows], np.int64),
        seconds_at=np.cumsum([row["seconds"] for row in timing][:windows]),
    )


def _log_dir(path: Path) -> RunRecord:
    records = read_curriculum(path)
    description = described(records.config)
    rows = read_evaluations(path, description, _first(records) + len(records.windows))
    if rows:
        description["config"]["held_out"] = f"{len(rows[0]['outcomes'])} contexts of {', '.join(rows[0]['groups'])}"
    return _of_curriculum(path, "log_dir", description, records, rows)


def _of_curriculum(
    path: Path, kind: str, description: dict[str, Any], records: Records, rows: list[dict[str, Any]], **others: Any
) -> RunRecord:
    """The run from the tables of its curriculum and the rows of its evaluations."""
    first, names = _first(records), rows[0]["groups"] if rows else ()
    return assembled(
        path,
        kind,
        description,
        int(records.config["n_contexts"]),
        len(records.windows),
        first=first,
        rollouts=_rollouts(records.windows),
        frontier=records.frontier,
        moves=_event_moves(records.events, first),
        evaluated_at=np.array([row["window"] for row in rows], np.int64),
        held_out=np.array([row["success"] for row in rows]),
        held_out_groups={name: np.array([row["groups"][name] for row in rows]) for name in names},
        **others,
    )


def described(stored: dict[str, Any]) -> dict[str, Any]:
    """What run.json would say of a ``log_dir`` with this config.json."""
    config = {
        "setting": "",
        "rule": stored["rule"]["key"],
        "seed": stored["seed"],
        "levels": stored["n_levels"],
        "constants": {k: v for k, v in stored["rule"].items() if k != "key"},
        "window": stored["window"],
        "name": stored.get("name", ""),
    }
    return {"config": config, "versions": stored["versions"]}


def read_labels(path: Path, n_contexts: int) -> Labels:
    """Read a JSON list with a group name (or number) per context."""
    try:
        names = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is no JSON list of group names: {error}") from error
    if not isinstance(names, list) or len(names) != n_contexts:
        held = f"a list of {len(names)}" if isinstance(names, list) else type(names).__name__
        raise Refusal(f"{path} must hold a list of {n_contexts} group names, one per context, and holds {held}")
    return numbered([str(name) for name in names])


def numbered(labels: Sequence[str]) -> Labels:
    """The names in order of first appearance, and each label's index into them."""
    names = tuple(dict.fromkeys(labels))
    return names, np.array([names.index(label) for label in labels], np.int64)


def _n_labelled(description: dict[str, Any]) -> int:
    """Number of training contexts with a label."""
    return len(description.get("groups", {}).get("train", ()))


def assembled(
    path: Path,
    kind: str,
    description: dict[str, Any],
    n_contexts: int,
    windows: int,
    *,
    first: int = 0,
    ladder: dict[str, Any] | None = None,
    **arrays: Any,
) -> RunRecord:
    """The run with its labels, from its description and its arrays."""
    config = description["config"]
    names, indices, oracle = tuple(arrays.get("held_out_groups", ())), None, None
    if "groups" in description:
        names, indices = numbered(description["groups"]["train"])
        oracle = np.array(description["groups"]["oracle"], np.int64)
    last = {name: array[-1] for name, array in arrays.items() if name.endswith("_at") and len(array)}
    about = About(
        name=str(path),
        kind=kind,
        setting=config["setting"],
        rule=config["rule"],
        seed=int(config["seed"]),
        config=config,
        versions=description.get("versions", {}),
        bank_sha256=description.get("bank_sha256", ""),
        n_contexts=n_contexts,
        n_levels=int(config["levels"]),
        windows=windows,
        first=first,
        budget=int(config.get("windows", windows)),
        ran_on=description.get("ran_on", {}),
        environment_steps=int(last.get("steps_at", 0)),
        seconds=float(last.get("seconds_at", 0.0)),
        last_evaluation=int(last["evaluated_at"]) if "evaluated_at" in last else None,
        bootstrap_fraction=None if ladder is None else float(ladder["bootstrap_fraction"]),
    )
    return RunRecord(about, groups=names, context_group=indices, oracle_group=oracle, **arrays)


def _rollouts(rows: list[dict[str, Any]]) -> Rollouts:
    sizes = [len(row["context"]) for row in rows]
    index = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    context, level, success = (
        np.fromiter((v for row in rows for v in row[name]), np.int32, sum(sizes))
        for name in ("context", "level", "success")
    )
    return Rollouts(index, context, level.astype(np.int8), success.astype(bool))


def _first(records: Records) -> int:
    """Number of the first recorded window. Rows that skip a window are refused."""
    numbers = [row["window"] for row in records.windows]
    first = numbers[0] if numbers else 0
    for i, number in enumerate(numbers):
        if number != first + i:
            raise Refusal(f"row {i + 1} of {WINDOWS} is of window {number}, and window {first + i} comes next")
    return int(first)


def _event_moves(events: Sequence[Event], first: int) -> Moves:
    rows = [(e.window - first, e.context, KINDS.index(e.kind), e.from_level) for e in events]
    window, context, kind, level = np.array(rows, np.int32).reshape(-1, 4).T
    return Moves(window, context, kind.astype(np.int8), level.astype(np.int8))
