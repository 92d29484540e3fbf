"""One frozen value for every kind of record: run folders, compact records, anyone's ``log_dir``."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.compact import KINDS, unpack
from scout_rl.records import CONFIG, Records, read_records, read_rows
from scout_rl.report.labels import Labels, n_train, training_groups

RUN, LADDER, SCHEMA = "run.json", "ladder.json", 1
"""What `scout train` writes (run_folder.py); read here without its imports, which need JAX."""


@dataclass(frozen=True)
class About:
    """What a run is; light enough to keep a thousand."""

    name: str
    """Where its records lie."""
    kind: str
    """``compact``, ``folder`` or ``log_dir``."""
    setting: str
    """Empty for a ``log_dir``: nobody wrote it down."""
    rule: str
    seed: int
    config: dict[str, Any]
    versions: dict[str, str]
    bank_sha256: str
    n_contexts: int
    n_levels: int
    windows: int
    """Closed."""
    budget: int
    """Windows that it was to have; those it has, where nobody said."""
    environment_steps: int
    """0 where unknown."""
    seconds: float
    """Wall time of all windows; 0 where unknown."""
    ran_on: dict[str, Any]
    """Backend, processor, cores, threads; empty where nobody wrote it down."""
    bootstrap_fraction: float | None = None
    """Of a policy ladder: the share of contexts whose starts needed more than the target-start policy."""

    @property
    def finished(self) -> bool:
        """Whether the whole budget was played."""
        return self.windows >= self.budget


class Moves(NamedTuple):
    """Frontier moves in order, one array entry each."""

    window: NDArray[np.int32]
    context: NDArray[np.int32]
    kind: NDArray[np.int8]
    """Index into ``compact.KINDS``."""
    from_level: NDArray[np.int8]


class Played(NamedTuple):
    """Every training rollout in order, one array entry each."""

    window: NDArray[np.int32]
    context: NDArray[np.int32]
    level: NDArray[np.int8]
    success: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Run:
    """One run's records."""

    about: About
    played: Played
    frontier: NDArray[np.int8] | None
    """``[windows, contexts]`` after each window."""
    moves: Moves
    groups: tuple[str, ...]
    """Names of the evaluation groups; empty where unknown."""
    context_group: NDArray[np.int64] | None
    """``[contexts]``: index into ``groups``; None where unknown."""
    evaluated_at: NDArray[np.int64]
    """``[evaluations]``: windows closed; empty where the run had no held-out evaluation."""
    held_out: NDArray[np.float64]
    """``[evaluations]``: success over all held-out contexts."""
    held_out_groups: dict[str, NDArray[np.float64]]
    """The same by evaluation group."""
    steps_at: NDArray[np.int64]
    """``[windows]``: environment steps so far; empty where unknown."""
    seconds_at: NDArray[np.float64]
    """``[windows]``: wall time so far; empty where unknown, in proportion to windows for a compact record."""


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
    if path.is_dir():
        try:
            return _folder(path, labels) if (path / RUN).exists() else _log_dir(path, labels)
        except (json.JSONDecodeError, KeyError) as error:
            raise ValueError(f"the records in {path} are damaged: {error}") from error
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    return _compact(path, labels)


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
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".npz") and _is_ours(folder, name))


def _is_ours(folder: str, name: str) -> bool:
    try:
        with zipfile.ZipFile(Path(folder) / name) as file:
            return "about.json.npy" in file.namelist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{Path(folder) / name} is damaged: {error}") from error


def _compact(path: Path, labels: Labels | None) -> Run:
    try:
        read = unpack(path)
    except (KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no compact record: {error}") from error
    windows, rollouts = read.context.shape
    config = read.about["config"]
    n_contexts = int(read.context.max()) + 1 if read.frontier is None else read.frontier.shape[1]
    about = _about(str(path), "compact", read.about, max(n_contexts, n_train(config["setting"])), windows)
    about = _told(about, int(read.environment_steps[-1]), read.seconds, read.ladder)
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
    told, records = json.loads((path / RUN).read_text()), read_records(path)
    if told.get("schema") != SCHEMA:
        raise ValueError(f"{path / RUN} has schema {told.get('schema')!r}, this version reads {SCHEMA}")
    windows = len(records.windows)
    tables = {name: read_rows(path / f"{name}.jsonl") for name in ("evaluations", "metrics", "timing")}
    steps = np.array([row["environment_steps"] for row in tables["metrics"]][:windows], np.int64)
    pace = np.cumsum([row["seconds"] for row in tables["timing"]][:windows])
    about = _about(str(path), "folder", told, int(records.config["n_contexts"]), windows)
    ladder = json.loads((path / LADDER).read_text()) if (path / LADDER).exists() else None
    about = _told(about, int(steps[-1]) if len(steps) else 0, float(pace[-1]) if len(pace) else 0.0, ladder)
    rows = tables["evaluations"]
    groups = {name: np.array([row["groups"][name] for row in rows]) for name in (rows[0]["groups"] if rows else ())}
    at, held_out = np.array([row["window"] for row in rows]), np.array([row["success"] for row in rows])
    moves = _event_moves(records)
    return _run(about, labels, _played(records.windows), records.frontier, moves, at, held_out, groups, steps, pace)


def _log_dir(path: Path, labels: Labels | None) -> Run:
    records = read_records(path)
    config, windows = records.config, len(records.windows)
    if not windows:
        raise ValueError(f"{path} holds no closed window yet: there is nothing to report")
    told = {
        "config": {"setting": "", "rule": config["rule"]["key"], "seed": config["seed"], "levels": config["n_levels"]}
        | {"constants": {k: v for k, v in config["rule"].items() if k != "key"}, "window": config["window"]},
        "versions": config["versions"],
    }
    about = _about(str(path), "log_dir", told, int(config["n_contexts"]), windows)
    none: NDArray[np.float64] = np.zeros(0)
    return _run(
        about, labels, _played(records.windows), records.frontier, _event_moves(records), none, none, {}, none, none
    )


def _about(name: str, kind: str, told: dict[str, Any], n_contexts: int, windows: int) -> About:
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
        budget=int(config.get("windows", windows)),
        environment_steps=0,
        seconds=0.0,
        ran_on=told.get("ran_on", {}),
    )


def _told(about: About, steps: int, seconds: float, ladder: dict[str, Any] | None) -> About:
    return replace(
        about,
        environment_steps=steps,
        seconds=seconds,
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


def _event_moves(records: Records) -> Moves:
    """Windows are counted from the first recorded one, as in `Played` and the frontier's rows."""
    first = records.windows[0]["window"] if records.windows else 0
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
