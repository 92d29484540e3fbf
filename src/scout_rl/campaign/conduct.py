"""The campaign itself: start what is missing, in order, until everything is finished or out of chances."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from scout_rl.campaign.engine import Engine
from scout_rl.campaign.file import Run
from scout_rl.campaign.state import (
    CHANCES,
    State,
    Status,
    add_failure,
    failures,
    forget_failures,
    is_finished,
    record_path,
    status,
)
from scout_rl.campaign.store import Store
from scout_rl.campaign.worker import held
from scout_rl.compact import pack

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
        standing[run.name] = found = status(run, store, None if run.name in needed else results)
        if run.name in packed and found.state in (State.MISSING, State.UNFINISHED) and not found.note:
            standing[run.name] = replace(found, note=f"packed, but {needed[run.name]} needs its policy")
    return standing


def missing(runs: Sequence[Run], standing: dict[str, Status], first: int | None = None) -> list[Run]:
    """The runs still to do, in order; the ``first`` of them alone, if given."""
    left = [run for run in runs if standing[run.name].state in (State.MISSING, State.UNFINISHED)]
    return left if first is None else left[:first]


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
            _keep(run, store, results)
    while waiting or started:
        for run, error, times in engine.ended():
            started.remove(run.name)
            if is_finished(run, store):
                forget_failures(run, store)
                _keep(run, store, results)
            else:
                reason = error or "the worker ended well, but the records are not complete"
                if add_failure(run, store, reason, times) < CHANCES:
                    waiting.insert(0, run)  # from its checkpoint
            standing[run.name] = status(run, store)
        for run in list(waiting):
            blocked = _blocked(run, standing, {r.name for r in waiting} | started)
            if blocked is not None:
                waiting.remove(run)
                standing[run.name] = Status(State.FAILED, standing[run.name].windows, blocked)
            elif engine.room() and _ready(run, standing) and not held(store, run.name):
                waiting.remove(run)
                if is_finished(run, store):  # by another campaign on the same folder
                    _keep(run, store, results)
                    standing[run.name] = status(run, store)
                    continue
                started.add(run.name)
                engine.start(run, CHANCES - len(failures(run, store)))
        look(standing, started)
        if waiting or started:
            time.sleep(every)
    return standing


def _keep(run: Run, store: Store, results: Path | None) -> None:
    """Pack a finished run, unless it is there."""
    if results is not None and not record_path(results, run).exists():
        with store.reading(run.name) as folder:
            try:
                pack(folder, record_path(results, run))
            except OSError as error:
                raise ValueError(f"{record_path(results, run)} cannot be written: {error.strerror}") from error


def _ready(run: Run, standing: dict[str, Status]) -> bool:
    return all(standing[name].state is State.FINISHED for name in run.needs)


def _blocked(run: Run, standing: dict[str, Status], going: set[str]) -> str | None:
    """Why a run that needs another one's policy can never start, if so."""
    for name in run.needs:
        if standing[name].state is not State.FINISHED and name not in going:
            return f"it needs {name}, which is {standing[name].state}"
    return None
