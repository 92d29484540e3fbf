"""From records of any kind (run folders, compact records, anyone's ``log_dir``) to the one value, `Run`."""

from __future__ import annotations

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
from scout_rl.records.compact import KINDS, unpack
from scout_rl.records.evaluations import read_evaluations
from scout_rl.records.stored import RUN, read_curriculum, read_json, read_run, read_table
from scout_rl.records.tables import CONFIG, WINDOWS, Records
from scout_rl.report.read.catalogue import Catalogue
from scout_rl.report.read.labels import numbered, read_labels
from scout_rl.report.read.run import About, Moves, Played, Run
from scout_rl.rules.cells import Event

LADDER = "ladder.json"
NOTHING: Catalogue = MappingProxyType({})


def find(paths: Sequence[Path]) -> list[Path]:
    """Every record at or below the paths, in order; a path without any is refused."""
    found: dict[Path, None] = {}
    for path in paths:
        here = list(_below(path))
        if not here:
            raise ValueError(f"{path} holds no records: no run folder, no log_dir and no compact record in it")
        found.update(dict.fromkeys(here))
    return list(found)


def load(path: Path, *, groups: Path | None = None, catalogue: Catalogue = NOTHING) -> Run:
    """Read one record of any kind; a file of ``groups`` (`read_labels`) replaces the labels that it holds."""
    with reading(path):
        read = _compact if not path.is_dir() else _folder if (path / RUN).exists() else _log_dir
        run = read(path)
    run = replace(run, about=replace(run.about, known=catalogue.get(run.about.setting)))
    if groups is None or not run.about.windows:
        return run
    names, of = read_labels(groups, run.about.n_contexts)
    return replace(run, groups=names, context_group=of)


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


def _compact(path: Path) -> Run:
    read = unpack(path)
    windows, rollouts = read.context.shape
    n_contexts = _labelled(read.about) or int(read.context.max()) + 1
    if read.frontier is not None:
        n_contexts = read.frontier.shape[1]
    about = _about(path, "compact", read.about, n_contexts, windows)
    index = np.repeat(np.arange(windows, dtype=np.int32), rollouts)
    window, context, kind = read.moves.T
    return _run(
        about,
        read.about,
        read.ladder,
        played=Played(
            index, read.context.reshape(-1).astype(np.int32), read.level.reshape(-1), read.success.reshape(-1)
        ),
        frontier=read.frontier,
        moves=_moves(window, context, kind, read.frontier, about.n_levels),
        evaluated_at=read.evaluated_at.astype(np.int64),
        held_out=read.outcomes.mean(axis=1),
        held_out_groups=read.groups,
        steps_at=read.environment_steps,
        seconds_at=np.linspace(read.seconds / windows, read.seconds, windows),
    )


def _folder(path: Path) -> Run:
    told = read_run(path)
    if not (path / CONFIG).exists() and not (path / WINDOWS).exists():
        # it has said what it is and has no curriculum yet, as while its ladder is built
        about = _about(path, "folder", told, _labelled(told), 0)
        return _run(about, told, played=_played([]), frontier=None, moves=_event_moves([], 0))
    records = read_curriculum(path)
    windows = len(records.windows)
    metrics, timing = (read_table(path / f"{name}.jsonl") for name in ("metrics", "timing"))
    rows = read_evaluations(path, told, min(windows, len(timing)))
    first = _first(records)
    return _run(
        _about(path, "folder", told, int(records.config["n_contexts"]), windows, first),
        told,
        read_json(path / LADDER) if (path / LADDER).exists() else None,
        played=_played(records.windows),
        frontier=records.frontier,
        moves=_event_moves(records.events, first),
        **_evaluations(rows),
        steps_at=np.array([row["environment_steps"] for row in metrics][:windows], np.int64),
        seconds_at=np.cumsum([row["seconds"] for row in timing][:windows]),
    )


def _log_dir(path: Path) -> Run:
    records = read_curriculum(path)
    config, first = records.config, _first(records)
    about = {
        "setting": "",
        "rule": config["rule"]["key"],
        "seed": config["seed"],
        "levels": config["n_levels"],
        "constants": {k: v for k, v in config["rule"].items() if k != "key"},
        "window": config["window"],
        "name": config.get("name", ""),
    }
    rows = read_evaluations(path, {"config": about}, first + len(records.windows))
    if rows:
        about["held_out"] = f"{len(rows[0]['outcomes'])} contexts of {', '.join(rows[0]['groups'])}"
    told = {"config": about, "versions": config["versions"]}
    return _run(
        _about(path, "log_dir", told, int(config["n_contexts"]), len(records.windows), first),
        told,
        played=_played(records.windows),
        frontier=records.frontier,
        moves=_event_moves(records.events, first),
        **_evaluations(rows),
    )


def _evaluations(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = rows[0]["groups"] if rows else ()
    return {
        "evaluated_at": np.array([row["window"] for row in rows], np.int64),
        "held_out": np.array([row["success"] for row in rows]),
        "held_out_groups": {name: np.array([row["groups"][name] for row in rows]) for name in names},
    }


def _about(path: Path, kind: str, told: dict[str, Any], n_contexts: int, windows: int, first: int = 0) -> About:
    config = told["config"]
    return About(
        name=str(path),
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
        ran_on=told.get("ran_on", {}),
    )


def _labelled(told: dict[str, Any]) -> int:
    """Training contexts that the record has labels for."""
    return len(told.get("groups", {}).get("train", ()))


def _run(about: About, told: dict[str, Any], ladder: dict[str, Any] | None = None, **arrays: Any) -> Run:
    """The run with its labels, and what its arrays say about it."""
    names, of, oracle = tuple(arrays.get("held_out_groups", ())), None, None
    if "groups" in told:
        names, of = numbered(told["groups"]["train"])
        oracle = np.array(told["groups"]["oracle"], np.int64)
    run = Run(about, groups=names, context_group=of, oracle_group=oracle, **arrays)
    last = {name: array[-1] for name, array in arrays.items() if name.endswith("_at") and len(array)}
    about = replace(
        about,
        environment_steps=int(last.get("steps_at", 0)),
        seconds=float(last.get("seconds_at", 0.0)),
        last_evaluation=int(last["evaluated_at"]) if "evaluated_at" in last else None,
        bootstrap_fraction=None if ladder is None else float(ladder["bootstrap_fraction"]),
    )
    return replace(run, about=about)


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


def _event_moves(events: Sequence[Event], first: int) -> Moves:
    rows = [(e.window - first, e.context, KINDS.index(e.kind), e.from_level) for e in events]
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
