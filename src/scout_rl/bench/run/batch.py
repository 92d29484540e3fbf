"""Many runs of one setting as one batch: each window of all of them is one compiled call (``jax.vmap`` over runs).

Runs of a batch may differ in what the host computes (rule, constants) and in values (seed, starts). Each has its own
curriculum, folder and checkpoints, and draws its random numbers from (seed, window), as in train.py.

A batch has a fixed number of lanes, its width. Kernels may depend on the width, so run.json records it. A lane without
a run computes a copy of another lane and records nothing. So a batch that has lost runs (finished, failed) still makes
the same numbers for the others.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp

from scout_rl.bench.families import load_bank
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import RunFolder
from scout_rl.bench.run.ladder import require_sources
from scout_rl.bench.run.opened import OpenRun
from scout_rl.bench.run.parts import BatchParts, make_batch_parts
from scout_rl.bench.run.resume import Start, find_starts, no_policy
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.files.lock import lock_folder
from scout_rl.files.refusal import Refusal

T = TypeVar("T")
SAVING = 16
"""Checkpoints that are written at the same time."""
DIFFERING = ("rule", "constants", "seed", "ladder_from", "ladder_fallback")
"""Fields of a config in which the runs of a batch may differ."""


class Member(NamedTuple):
    """A run of a batch."""

    name: str
    config: RunConfig
    path: Path


class _Opened(NamedTuple):
    member: Member
    folder: RunFolder
    starts: dict[int, Start]
    """Where it can be continued, by window."""


def shared_fields(config: RunConfig) -> str:
    """What the runs of a batch have in common, as a text to compare."""
    return json.dumps({name: value for name, value in config.as_dict().items() if name not in DIFFERING})


def by_common_window(windows: Mapping[str, Iterable[int]]) -> list[tuple[int, list[str]]]:
    """Runs that can continue at the same window, with that window: each run once, the largest number together.

    ``windows`` are those at which each run can be continued. Of windows that equally many runs have, the newest counts.
    """
    left, groups = {name: set(at) for name, at in windows.items()}, []
    while left:
        count = {window: sum(window in at for at in left.values()) for at in left.values() for window in at}
        best = max(count, key=lambda window: (count[window], window))
        names = [name for name, at in left.items() if best in at]
        groups.append((best, names))
        left = {name: at for name, at in left.items() if name not in names}
    return groups


class Batch:
    """Trains runs together. A run that fails leaves the batch, and ``failed`` says why; the others go on."""

    def __init__(self, width: int, say: Callable[[str], None] = print) -> None:
        self.width, self.say = width, say
        self.failed: dict[str, str] = {}
        self._runs: dict[int, tuple[Member, OpenRun]] = {}
        """The runs under way, by lane."""

    def train(
        self,
        members: Sequence[Member],
        *,
        watch: Callable[[Sequence[Member], int], None] = lambda members, window: None,
        until: int | None = None,
    ) -> None:
        """Train or continue the runs; stop after ``until`` windows.

        They begin at the newest window that all of them have. Runs that share none with the others (their checkpoints
        are damaged) are trained after them. ``watch`` gets the runs under way and the windows closed.
        """
        config = members[0].config
        if len(members) > self.width or any(shared_fields(m.config) != shared_fields(config) for m in members):
            raise ValueError(f"these {len(members)} runs are no batch of width {self.width}")
        setting = setting_of(config.setting)
        bank = load_bank(setting)
        parts = make_batch_parts(config, setting, bank)
        last = config.windows if until is None else min(until, config.windows)
        with ExitStack() as locks:
            runs = [self._attempt(member, self._open, member, bank, locks) for member in members]
            opened = {run.member.name: run for run in runs if run is not None}
            for window, names in by_common_window({name: run.starts for name, run in opened.items()}):
                if window < last:
                    states = self._begin([opened[name] for name in names], window, parts, setting, bank)
                    self._train(states, window, last, parts, watch)

    def _open(self, member: Member, bank: ContextBank, locks: ExitStack) -> _Opened | None:
        """Lock the run and find where it can be continued; None for a finished one."""
        require_sources(member.path, member.config, bank)
        locks.enter_context(lock_folder(member.path))
        folder = RunFolder(member.path, member.config, bank, self.say, width=self.width)
        starts = list(find_starts(folder, member.config, self.say))
        if starts[0].finished:
            self.say(no_policy(member.path, member.config))
            return None
        return _Opened(member, folder, {start.checkpoint.window if start.checkpoint else 0: start for start in starts})

    def _begin(
        self, group: Sequence[_Opened], window: int, parts: BatchParts, setting: Setting, bank: ContextBank
    ) -> list[Any]:
        """Open the runs, each in a lane; their learners' states."""
        self._runs, states = {}, list[Any]()

        def begin(opened: _Opened) -> tuple[OpenRun, Any]:
            resume_from = opened.starts[window].checkpoint
            run = OpenRun(opened.member.config, opened.folder, setting, bank, resume_from, self.say)
            return run, run.first_state(parts.init)

        for opened in group:
            begun = self._attempt(opened.member, begin, opened)
            if begun is not None:
                self._runs[len(states)] = opened.member, begun[0]
                states.append(begun[1])
        return states

    def _train(
        self,
        states: list[Any],
        window: int,
        until: int,
        parts: BatchParts,
        watch: Callable[[Sequence[Member], int], None],
    ) -> None:
        """The loop of train.py, each step for all runs."""
        if not states:
            return
        copied = [*range(len(states)), *[0] * (self.width - len(states))]  # the lane whose values each lane has
        roots = jnp.stack([self._runs[lane][1].root for lane in copied])
        state = jax.tree.map(lambda *each: jnp.stack([each[lane] for lane in copied]), *states)
        self._each(OpenRun.begin)
        if window == 0:
            self._each(OpenRun.record_evaluation, parts.evaluate(state))

        while window < until:
            cells = self._each(OpenRun.assign)
            starts = self._each(OpenRun.starts, cells)
            if not starts:
                return
            spare = next(iter(starts.values()))
            state, played = parts.play(state, [starts.get(lane, spare) for lane in copied], roots, window + 1)
            self._each(OpenRun.close, cells, played)
            window += 1
            if any(run.evaluation_due for _, run in self._runs.values()):
                self._each(OpenRun.record_evaluation, parts.evaluate(state))
            self._each(OpenRun.record_time)
            if any(run.checkpoint_due for _, run in self._runs.values()):
                with ThreadPoolExecutor(SAVING) as threads:  # most of its time is waiting for the disk
                    self._each(OpenRun.save, _by_lane(jax.device_get(state), self._runs), run_all=threads.map)
            watch([member for member, _ in self._runs.values()], window)

    def _each(self, step: Callable[..., T], *values: Any, run_all: Callable[..., Iterable[Any]] = map) -> dict[int, T]:
        """A step of every run, with the values of its lane; a run that fails leaves the batch."""

        def attempt(lane: int) -> T | None:
            member, run = self._runs[lane]
            return self._attempt(member, step, run, *(value[lane] for value in values))

        results = dict(zip(self._runs, run_all(attempt, list(self._runs)), strict=True))
        self._runs = {lane: pair for lane, pair in self._runs.items() if pair[0].name not in self.failed}
        return {lane: cast(T, results[lane]) for lane in self._runs}

    def _attempt(self, member: Member, step: Callable[..., T], *arguments: Any) -> T | None:
        """The result of a step; None where it fails, which is no reason for the other runs to end."""
        try:
            return step(*arguments)
        except Refusal as error:
            self.failed[member.name] = str(error)
        except Exception as error:  # whatever it is, it is listed
            self.say(traceback.format_exc())
            self.failed[member.name] = f"{type(error).__name__}: {error}"
        return None


def _by_lane(stacked: Any, lanes: Iterable[int]) -> dict[int, Any]:
    """The pytrees of these lanes, from one with a leading axis."""
    return {lane: jax.tree.map(lambda array, lane=lane: array[lane], stacked) for lane in lanes}
