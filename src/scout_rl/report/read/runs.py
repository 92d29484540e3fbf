"""From records of any kind (run folders, compact records, anyone's ``log_dir``) to the one value, `Run`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.archive import has_entry
from scout_rl.files.damage import reading
from scout_rl.records.compact import KINDS, unpack
from scout_rl.records.evaluations import read_evaluations
from scout_rl.records.stored import RUN, read_curriculum, read_json, read_run, read_table
from scout_rl.records.tables import CONFIG, WINDOWS, Records
from scout_rl.report.read.labels import Labels, n_train, training_groups
from scout_rl.report.read.run import About, Moves, Played, Run

LADDER = "ladder.json"


def find(paths: Sequence[Path]) -> list[Path]:
    """Every record at or below the paths, in order; a path without any is refused."""
    found: dict[Path, None] = {}
    for path in paths:
        here = list(_below(path))
        if not here:
            raise ValueError(f"{path} holds no records: no run folder, no log_dir and no compact record in it")
        found.update(dict.fromkeys(here))
    return list(found)


def load(path: Path, labels: Labels | None = None) -> Run:
    """Read one record of any kind; ``labels`` replace the groups that the settings table gives."""
    with reading(path):
        if not path.is_dir():
            return _compact(path, labels)
        return _folder(path, labels) if (path / RUN).exists() else _log_dir(path, labels)


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, names, files in os.walk(path):
        if RUN in files or CONFIG in files:
            names.clear()  # what lies inside a run folder is its own
            yield Path(folder)
            continue
        names.sort()
        archives = (Path(folder) / name for name in sorted(files) if name.endswith(".npz"))
        yield from (path for path in archives if _is_ours(path))


def _is_ours(path: Path) -> bool:
    with reading(path):
        return has_entry(path.read_bytes(), "about.json")


def _compact(path: Path, labels: Labels | None) -> Run:
    read = unpack(path)
    windows, rollouts = read.context.shape
    if read.frontier is None:
        n_contexts = max(int(read.context.max()) + 1, n_train(read.about["config"]["setting"]))
    else:
        n_contexts = read.frontier.shape[1]
    about = _about(str(path), "compact", read.about, n_contexts, windows)
    about = _told(about, int(read.environment_steps[-1]), read.seconds, read.evaluated_at, read.ladder)
    index = np.repeat(np.arange(windows, dtype=np.int32), rollouts)
    played = Played(index, read.context.reshape(-1).astype(np.int32), read.level.reshape(-1), read.success.reshape(-1))
    window, context, kind = read.moves.T
    moves = _moves(window, context, kind, read.frontier, about.n_levels)
    held_out = read.outcomes.mean(axis=1)
    pace = np.linspace(read.seconds / windows, read.seconds, windows)
    return _run(
        about,
        labels,
        played,
        read.frontier,
        moves,
        read.evaluated_at,
        held_out,
        read.groups,
        read.environment_steps,
        pace,
    )


def _folder(path: Path, labels: Labels | None) -> Run:
    told = read_run(path)
    if not (path / CONFIG).exists() and not (path / WINDOWS).exists():
        return _just_begun(path, told)
    records = read_curriculum(path)
    windows = len(records.windows)
    tables = {name: read_table(path / f"{name}.jsonl") for name in ("metrics", "timing")}
    steps = np.array([row["environment_steps"] for row in tables["metrics"]][:windows], np.int64)
    pace = np.cumsum([row["seconds"] for row in tables["timing"]][:windows])
    about = _about(str(path), "folder", told, int(records.config["n_contexts"]), windows, _first(records))
    ladder = read_json(path / LADDER) if (path / LADDER).exists() else None
    rows = read_evaluations(path, told, min(windows, len(tables["timing"])))
    groups = {name: np.array([row["groups"][name] for row in rows]) for name in (rows[0]["groups"] if rows else ())}
    at, held_out = np.array([row["window"] for row in rows]), np.array([row["success"] for row in rows])
    about = _told(about, int(steps[-1]) if len(steps) else 0, float(pace[-1]) if len(pace) else 0.0, at, ladder)
    moves = _event_moves(records)
    return _run(about, labels, _played(records.windows), records.frontier, moves, at, held_out, groups, steps, pace)


def _just_begun(path: Path, told: dict[str, Any]) -> Run:
    """A run that has said what it is and has no curriculum yet, as while its ladder is built: no window is closed."""
    about = _about(str(path), "folder", told, n_train(told["config"]["setting"]), 0)
    none: NDArray[np.float64] = np.zeros(0)
    moves = Moves(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(0, np.int8))
    return _run(about, None, _played([]), None, moves, none, none, {}, none, none)


def _log_dir(path: Path, labels: Labels | None) -> Run:
    records = read_curriculum(path)
    config, windows = records.config, len(records.windows)
    told = {
        "config": {"setting": "", "rule": config["rule"]["key"], "seed": config["seed"], "levels": config["n_levels"]}
        | {"constants": {k: v for k, v in config["rule"].items() if k != "key"}, "window": config["window"]},
        "versions": config["versions"],
    }
    about = _about(str(path), "log_dir", told, int(config["n_contexts"]), windows, _first(records))
    none: NDArray[np.float64] = np.zeros(0)
    return _run(
        about, labels, _played(records.windows), records.frontier, _event_moves(records), none, none, {}, none, none
    )


def _about(name: str, kind: str, told: dict[str, Any], n_contexts: int, windows: int, first: int = 0) -> About:
    config = told["config"]
    return About(
        name=name,
        kind=kind,
        setting=config["setting"],
        rule=config["rule"],
        seed=int(config["seed"]),
        config=config,
        versions=told.get("versions", {}),
        bank_sha256=told.get("bank_sha256", ""),
        n_contexts=n_contexts,
        n_levels=int(config["levels"]),
        windows=windows,
        first=first,
        budget=int(config.get("windows", windows)),
        environment_steps=0,
        seconds=0.0,
        ran_on=told.get("ran_on", {}),
    )


def _told(about: About, steps: int, seconds: float, at: NDArray[Any], ladder: dict[str, Any] | None) -> About:
    return replace(
        about,
        environment_steps=steps,
        seconds=seconds,
        last_evaluation=int(at[-1]) if len(at) else None,
        bootstrap_fraction=None if ladder is None else float(ladder["bootstrap_fraction"]),
    )


def _run(
    about: About,
    labels: Labels | None,
    played: Played,
    frontier: NDArray[np.int8] | None,
    moves: Moves,
    at: NDArray[Any],
    held_out: NDArray[np.float64],
    groups: dict[str, NDArray[np.float64]],
    steps: NDArray[Any],
    pace: NDArray[np.float64],
) -> Run:
    labels = labels or training_groups(about.setting, about.n_contexts, about.bank_sha256)
    names, of = labels if labels is not None else (tuple(groups), None)
    return Run(about, played, frontier, moves, names, of, at.astype(np.int64), held_out, groups, steps, pace)


def _played(rows: list[dict[str, Any]]) -> Played:
    sizes = [len(row["context"]) for row in rows]
    index = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    context, level, success = (
        np.fromiter((v for row in rows for v in row[name]), np.int32, sum(sizes))
        for name in ("context", "level", "success")
    )
    return Played(index, context, level.astype(np.int8), success.astype(bool))


def _first(records: Records) -> int:
    """Number of the first recorded window; rows that leave one out are refused, since all arrays count them."""
    numbers = [row["window"] for row in records.windows]
    first = numbers[0] if numbers else 0
    for i, number in enumerate(numbers):
        if number != first + i:
            raise ValueError(f"row {i + 1} of {WINDOWS} is of window {number}, and window {first + i} comes next")
    return int(first)


def _event_moves(records: Records) -> Moves:
    first = _first(records)
    rows = [(e.window - first, e.context, KINDS.index(e.kind), e.from_level) for e in records.events]
    window, context, kind, level = np.array(rows, np.int32).reshape(-1, 4).T
    return Moves(window, context, kind.astype(np.int8), level.astype(np.int8))


def _moves(
    window: NDArray[np.int32],
    context: NDArray[np.int32],
    kind: NDArray[np.int32],
    frontier: NDArray[np.int8] | None,
    n_levels: int,
) -> Moves:
    if frontier is None:
        level = np.zeros(0, np.int8)
    else:
        level = np.where(window > 0, frontier[np.maximum(window - 1, 0), context], n_levels - 1).astype(np.int8)
    return Moves(window, context, kind.astype(np.int8), level)
