"""The whole training run (Algorithm 1), top to bottom: assign cells, roll out, update, report, evaluate, save.

Killed at any moment and started again with the same config, it ends with the same records. Every random number is drawn
from (seed, window). A restart cuts the records back to the checkpoint that resume.py finds and plays the rest again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax

from scout_rl.bench.families import load_bank
from scout_rl.bench.rollouts.evaluate import Evaluation
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import RunFolder
from scout_rl.bench.run.ladder import require_sources
from scout_rl.bench.run.opened import OpenRun
from scout_rl.bench.run.parts import make_parts
from scout_rl.bench.run.resume import find_starts, no_policy
from scout_rl.bench.settings.bank import BankPart, ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.curriculum import Curriculum
from scout_rl.files.lock import lock_folder


class Progress(NamedTuple):
    """What a progress bar or a sink receives after a window."""

    window: int
    """Windows closed so far."""
    success: float
    """Share of this window's training rollouts that succeeded."""
    metrics: dict[str, float]
    evaluation: Evaluation | None
    """The held-out evaluation taken after this window, if one was due."""
    frontier: dict[str, float]
    """Mean frontier of each evaluation group's training contexts; empty for rules without one."""


def train(
    config: RunConfig,
    path: Path,
    *,
    watch: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = print,
    until: int | None = None,
    seed_stream: bool = False,
) -> None:
    """Train ``config`` in the folder ``path``, or continue it; stop after ``until`` windows.

    Stopping early changes no schedule and no evaluation: they follow the whole budget. ``seed_stream`` draws the cells
    as runs did before they used the curriculum's generator, so that old records can be repeated.
    """
    setting = setting_of(config.setting)
    bank = load_bank(setting)
    require_sources(path, config, bank)
    last = config.windows if until is None else min(until, config.windows)
    with lock_folder(path):
        folder = RunFolder(path, config, bank, say, seed_stream=seed_stream)
        _train(config, folder, setting, bank, watch, say, last)


def _train(
    config: RunConfig,
    folder: RunFolder,
    setting: Setting,
    bank: ContextBank,
    watch: Callable[[Progress], None],
    say: Callable[[str], None],
    until: int,
) -> None:
    resume_from, finished = next(find_starts(folder, config, say))
    if finished:
        say(no_policy(folder.path, config))
        return
    parts = make_parts(config, setting, bank)
    run = OpenRun(config, folder, setting, bank, resume_from, say)
    state = run.first_state(parts.init)
    if run.window < until:
        run.begin()
    if resume_from is None:
        run.record_evaluation(parts.evaluate(state))

    while run.window < until:
        key = jax.random.fold_in(run.root, run.window + 1)
        cells = run.assign()
        played = parts.play(state, run.starts(cells), bank.train.oracle_group[cells.context], key)
        state = played.state
        run.close(cells, played)
        evaluation = parts.evaluate(state) if run.evaluation_due else None
        if evaluation is not None:
            run.record_evaluation(evaluation)
        run.record_time()
        if run.checkpoint_due:
            run.save(state)
        frontier = mean_frontier(run.curriculum, bank.train, setting)
        watch(Progress(run.window, float(played.success.mean()), played.metrics, evaluation, frontier))


def mean_frontier(curriculum: Curriculum, part: BankPart, setting: Setting) -> dict[str, float]:
    """Mean frontier by evaluation group; it is only shown, no rule uses it."""
    level = curriculum.frontier
    if level is None:
        return {}
    return {g.name: float(level[part.evaluation_group == i].mean()) for i, g in enumerate(setting.groups)}
