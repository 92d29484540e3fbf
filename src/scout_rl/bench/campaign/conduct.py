"""The campaign itself: start what is missing, in order, until everything is finished or out of chances."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from scout_rl.bench.campaign.engine import Engine
from scout_rl.bench.campaign.file import Run
from scout_rl.bench.campaign.state import (
    CHANCES,
    State,
    Status,
    add_failure,
    failures,
    forget_failures,
    record_path,
    status,
)
from scout_rl.bench.run.store import Store
from scout_rl.bench.run.worker import is_being_trained
from scout_rl.records.compact import pack

Look = Callable[[dict[str, Status], set[str]], None]
"""Told, again and again, where every run stands and which ones have been started."""


def survey(runs: Sequence[Run], store: Store, results: Path | None) -> dict[str, Status]:
    """Where every run stands, from the disk alone.

    A compact record stands for its run, but not for one whose policy another run still needs: that takes its folder.
    """
    packed = {run.name for run in runs if results is not None and record_path(results, run).exists()}
    needed = {name: run.name for run in runs if run.name not in packed for name in run.needs}
    standing = {}
    for run in runs:
        standing[run.name] = found = _look(run, store, None if run.name in needed else results)
        if run.name in packed and found.state in (State.MISSING, State.UNFINISHED) and not found.note:
            standing[run.name] = replace(found, note=f"packed, but {needed[run.name]} needs its policy")
    return standing


def missing(runs: Sequence[Run], standing: dict[str, Status], first: int | None = None) -> list[Run]:
    """The runs still to do, in order; the ``first`` of them alone, if given, each after those that it needs."""
    left = {run.name: run for run in runs if standing[run.name].state in (State.MISSING, State.UNFINISHED)}
    if first is None:
        return list(left.values())
    chosen: dict[str, Run] = {}
    for run in left.values():
        wanted = _with_needs(run, left)
        if all(name in left or standing[name].state is State.FINISHED for one in wanted for name in one.needs):
            chosen.update((one.name, one) for one in wanted)
    return list(chosen.values())[:first]


def _with_needs(run: Run, left: dict[str, Run], above: tuple[str, ...] = ()) -> list[Run]:
    """A run after those of ``left`` that it needs; ``above`` ends a circle."""
    found: list[Run] = []
    for name in run.needs:
        if name in left and name not in (run.name, *above):
            found += _with_needs(left[name], left, (run.name, *above))
    return [*found, run]


def conduct(
    runs: Sequence[Run],
    todo: Sequence[Run],
    standing: dict[str, Status],
    store: Store,
    engine: Engine,
    *,
    results: Path | None = None,
    look: Look = lambda standing, started: None,
    every: float = 0.2,
) -> dict[str, Status]:
    """Do ``todo``; returns where every run of the campaign stands then. What fails is listed, the rest goes on."""
    standing, waiting, started = dict(standing), list(todo), set[str]()
    for run in runs:
        if standing[run.name].state is State.FINISHED:
            standing[run.name] = _kept(run, store, results, standing[run.name])
    while waiting or started:
        for run, error, times in engine.ended():
            started.remove(run.name)
            standing[run.name] = _after(run, error, times, store, results)
            if standing[run.name].state in (State.MISSING, State.UNFINISHED):
                waiting.insert(0, run)  # from its checkpoint
        for run in list(waiting):
            blocked = _blocked(run, standing, {r.name for r in waiting} | started)
            if blocked is not None:
                waiting.remove(run)
                standing[run.name] = Status(State.FAILED, standing[run.name].windows, blocked)
            elif engine.room() and _ready(run, standing) and not is_being_trained(store, run.name):
                waiting.remove(run)
                found = _look(run, store)
                if found.state in (State.FINISHED, State.FAILED):  # by another campaign on the same folder
                    standing[run.name] = _kept(run, store, results, found)
                    continue
                try:
                    engine.start(run, CHANCES - len(failures(run, store)))
                    started.add(run.name)
                except OSError as problem:
                    standing[run.name] = Status(State.FAILED, found.windows, f"it cannot be started: {_of(problem)}")
        look(standing, started)
        if waiting or started:
            time.sleep(every)
    return standing


def _look(run: Run, store: Store, results: Path | None = None) -> Status:
    """Where a run stands; one whose files cannot be read has failed, and says which."""
    try:
        return status(run, store, results)
    except ValueError as error:
        return Status(State.FAILED, 0, str(error))


def _after(run: Run, error: str | None, times: int, store: Store, results: Path | None) -> Status:
    """Where a run stands that its engine is done with; a failure is noted."""
    found = _look(run, store)
    if found.state is State.FINISHED:
        forget_failures(run, store)
        return _kept(run, store, results, found)
    reason = error or "the worker ended well, but the records are not complete"
    try:
        add_failure(run, store, reason, times)
    except OSError as problem:  # not tried again: nobody would count how often
        return Status(State.FAILED, found.windows, f"{reason} (this could not be noted: {_of(problem)})")
    except ValueError as damage:
        return Status(State.FAILED, found.windows, str(damage))
    return _look(run, store)


def _kept(run: Run, store: Store, results: Path | None, found: Status) -> Status:
    """Pack a finished run, unless it is there; one that cannot be packed has failed."""
    if results is None or found.state is not State.FINISHED or record_path(results, run).exists():
        return found
    try:
        with store.reading(run.name) as folder:
            pack(folder, record_path(results, run))
    except OSError as error:
        return replace(found, state=State.FAILED, note=f"its record cannot be written: {_of(error)}")
    except ValueError as error:
        return replace(found, state=State.FAILED, note=str(error))
    return found


def _of(error: OSError) -> str:
    named = "" if error.filename is None else f"{error.filename}: "
    return f"{named}{error.strerror or error}"


def _ready(run: Run, standing: dict[str, Status]) -> bool:
    return all(standing[name].state is State.FINISHED for name in run.needs)


def _blocked(run: Run, standing: dict[str, Status], going: set[str]) -> str | None:
    """Why a run that needs another one's policy can never start, if so."""
    for name in run.needs:
        if standing[name].state is not State.FINISHED and name not in going:
            return f"it needs {name}, which is {standing[name].state}"
    return None
