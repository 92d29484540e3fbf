"""Conduct a campaign: start the missing runs in order, until every run is finished or has failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from scout_rl.bench.campaign.engine import Engine
from scout_rl.bench.campaign.file import PlannedRun
from scout_rl.bench.campaign.state import (
    CHANCES,
    Phase,
    RunState,
    add_failure,
    failures,
    forget_failures,
    record_path,
    run_state,
)
from scout_rl.bench.run.store import Store
from scout_rl.bench.run.worker import is_being_trained
from scout_rl.files.lock import MOMENT
from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import pack

Watch = Callable[[dict[str, RunState], set[str]], None]
"""Called repeatedly with the state of every run and the names of the started ones."""


def survey(runs: Sequence[PlannedRun], store: Store, results: Path | None) -> dict[str, RunState]:
    """The state of every run, from the disk.

    A compact record makes a run finished, unless another run still needs its policy: then its folder counts.
    """
    packed = {run.name for run in runs if results is not None and record_path(results, run).exists()}
    needed = {name: run.name for run in runs if run.name not in packed for name in run.needs}
    states = {}
    for run in runs:
        states[run.name] = state = _state(run, store, None if run.name in needed else results)
        if run.name in packed and state.phase in (Phase.MISSING, Phase.UNFINISHED) and not state.note:
            states[run.name] = replace(state, note=f"packed, but {needed[run.name]} needs its policy")
    return states


def missing(runs: Sequence[PlannedRun], states: dict[str, RunState], first: int | None = None) -> list[PlannedRun]:
    """The runs still to do, in order; or only the ``first`` of them, each after those that it needs."""
    left = {run.name: run for run in runs if states[run.name].phase in (Phase.MISSING, Phase.UNFINISHED)}
    if first is None:
        return list(left.values())
    selected: dict[str, PlannedRun] = {}
    for run in left.values():
        wanted = _with_needs(run, left)
        if all(name in left or states[name].phase is Phase.FINISHED for needed in wanted for name in needed.needs):
            selected.update((needed.name, needed) for needed in wanted)
    return list(selected.values())[:first]


def _with_needs(run: PlannedRun, left: dict[str, PlannedRun], above: tuple[str, ...] = ()) -> list[PlannedRun]:
    """A run, preceded by the runs of ``left`` that it needs; ``above`` breaks cycles."""
    needed: list[PlannedRun] = []
    for name in run.needs:
        if name in left and name not in (run.name, *above):
            needed += _with_needs(left[name], left, (run.name, *above))
    return [*needed, run]


def conduct(
    runs: Sequence[PlannedRun],
    todo: Sequence[PlannedRun],
    states: dict[str, RunState],
    store: Store,
    engine: Engine,
    *,
    results: Path | None = None,
    watch: Watch = lambda states, started: None,
    wait: bool = True,
    every: float = 0.2,
) -> dict[str, RunState]:
    """Do ``todo`` and return the state of every run of the campaign. A failed run does not stop the others.

    Runs that other processes train are waited for, and continued if those processes die. Without ``wait`` they are left
    to them.
    """
    states, waiting, started = dict(states), list(todo), set[str]()
    worked = time.monotonic()
    for run in runs:
        if states[run.name].phase is Phase.FINISHED:
            states[run.name] = _packed(run, store, results, states[run.name])
    while waiting or started:
        for run, error, times in engine.ended():
            started.remove(run.name)
            if not times:
                waiting.insert(0, run)
                continue
            states[run.name] = _state_after(run, error, times, store, results)
            if states[run.name].phase in (Phase.MISSING, Phase.UNFINISHED):
                waiting.insert(0, run)  # from its checkpoint
        for run in list(waiting):
            blocked = _blocked(run, states, {r.name for r in waiting} | started)
            if blocked is not None:
                waiting.remove(run)
                states[run.name] = RunState(Phase.FAILED, states[run.name].windows, blocked)
            elif (
                engine.room()
                and all(states[name].phase is Phase.FINISHED for name in run.needs)
                and not is_being_trained(store, run.name)
            ):
                waiting.remove(run)
                state = _state(run, store)
                if state.phase in (Phase.FINISHED, Phase.FAILED):  # by another campaign on the same folder
                    states[run.name] = _packed(run, store, results, state)
                    continue
                try:
                    engine.start(run, CHANCES - len(failures(run, store)))
                    started.add(run.name)
                except OSError as problem:
                    states[run.name] = RunState(
                        Phase.FAILED, state.windows, f"it cannot be started: {_reason(problem)}"
                    )
        watch(states, started)
        if started:
            worked = time.monotonic()
        elif not wait and time.monotonic() - worked > MOMENT:  # longer than another process only checks a lock
            return states | {run.name: _elsewhere(run, states) for run in waiting}
        if waiting or started:
            time.sleep(every)
    return states


def _elsewhere(run: PlannedRun, states: dict[str, RunState]) -> RunState:
    """The state of a run that is left to other processes."""
    needed = [name for name in run.needs if states[name].phase is not Phase.FINISHED]
    note = f"it needs {needed[0]}, which another process trains" if needed else "another process trains it"
    return replace(states[run.name], phase=Phase.ELSEWHERE, note=note)


def _state(run: PlannedRun, store: Store, results: Path | None = None) -> RunState:
    """The state of a run; a run with unreadable files has failed."""
    try:
        return run_state(run, store, results)
    except Refusal as error:
        return RunState(Phase.FAILED, 0, str(error))


def _state_after(run: PlannedRun, error: str | None, times: int, store: Store, results: Path | None) -> RunState:
    """The state of a run that its engine has ended; record a failure."""
    state = _state(run, store)
    if state.phase is Phase.FINISHED:
        forget_failures(run, store)
        return _packed(run, store, results, replace(state, here=True))
    reason = error or "the worker ended well, but the records are not complete"
    try:
        add_failure(run, store, reason, times)
    except OSError as problem:  # not tried again: its failures cannot be counted
        return RunState(Phase.FAILED, state.windows, f"{reason} (this could not be noted: {_reason(problem)})")
    except Refusal as damage:
        return RunState(Phase.FAILED, state.windows, str(damage))
    return _state(run, store)


def _packed(run: PlannedRun, store: Store, results: Path | None, state: RunState) -> RunState:
    """Pack a finished run, unless its record exists; a run that cannot be packed has failed."""
    if results is None or state.phase is not Phase.FINISHED or record_path(results, run).exists():
        return state
    try:
        with store.reading(run.name) as folder:
            pack(folder, record_path(results, run))
    except OSError as error:
        return replace(state, phase=Phase.FAILED, note=f"its record cannot be written: {_reason(error)}")
    except Refusal as error:
        return replace(state, phase=Phase.FAILED, note=str(error))
    return state


def _reason(error: OSError) -> str:
    named = "" if error.filename is None else f"{error.filename}: "
    return f"{named}{error.strerror or error}"


def _blocked(run: PlannedRun, states: dict[str, RunState], going: set[str]) -> str | None:
    """Why a run can never start: a run that it needs has failed. None if it can."""
    for name in run.needs:
        if states[name].phase is not Phase.FINISHED and name not in going:
            return f"it needs {name}, which is {states[name].phase}"
    return None
