"""The whole training run (Algorithm 1), top to bottom: assign cells, roll out, update, report, evaluate, save.

Killed at any moment and started again with the same config, it ends with the same records. Every random number is drawn
from (seed, window). A restart cuts the records back to the checkpoint that resume.py finds and plays the rest again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from scout_rl.bench.families import load_bank
from scout_rl.bench.rollouts.evaluate import Evaluation
from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import RunFolder
from scout_rl.bench.run.ladder import require_sources, run_ladder
from scout_rl.bench.run.learner_state import Saved, restore
from scout_rl.bench.run.parts import make_parts
from scout_rl.bench.run.resume import find_start
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
    path = folder.path
    resume_from, finished = find_start(folder, config, say)
    if finished:
        say(f"{path} is finished: all {config.windows} windows are there; without a checkpoint its policy is not")
        return
    folder.claim()
    contexts = bank.train
    ladder = run_ladder(path, config, setting, bank, say)
    parts = make_parts(config, setting, bank)
    folder.cut(0 if resume_from is None else resume_from.window, len(contexts))
    curriculum = Curriculum(
        config.make_rule(),
        len(contexts),
        config.levels,
        seed=config.seed,
        window=config.episodes,
        oracle_group=contexts.oracle_group,
        log_dir=path,
    )
    if folder.seed_stream:
        curriculum.generator = np.random.Generator(np.random.PCG64(config.seed))
    root = jax.random.key(config.seed)
    state, steps, saved = parts.init(jax.random.fold_in(root, 0)), 0, Saved()
    if resume_from is not None:
        say(f"continuing {path} from window {resume_from.window}")
        curriculum.load_state_dict({**resume_from.meta["curriculum"], "arrays": resume_from.parts["curriculum"]})
        state, saved = restore(state, resume_from)
        steps = resume_from.meta["environment_steps"]
    if curriculum.windows < until:
        folder.label(curriculum.windows)
    clock = time.perf_counter()
    if resume_from is None:
        _record_evaluation(folder, 0, 0, parts.evaluate(state))

    while curriculum.windows < until:
        window = curriculum.windows
        cells = curriculum.assign(config.episodes)
        starts = {name: array[cells.context, cells.level] for name, array in ladder.items()}
        played = parts.play(state, starts, contexts.oracle_group[cells.context], jax.random.fold_in(root, window + 1))
        state, steps = played.state, steps + played.steps
        folder.metrics.append({"window": window, "environment_steps": steps, **played.metrics})
        curriculum.report(cells, played.success, played.signal)

        closed, last = curriculum.windows, curriculum.windows == config.windows
        due = closed % config.evaluate_every == 0 or last
        evaluation = _record_evaluation(folder, closed, steps, parts.evaluate(state)) if due else None
        now = time.perf_counter()
        folder.timing.append({"window": window, "seconds": round(now - clock, 4)})
        clock = now
        if closed % config.checkpoint_every == 0 or last:
            pacing = curriculum.state_dict()
            learned, new, saved = saved.next(state)
            arrays = {"learner": learned, "curriculum": pacing.pop("arrays")}
            meta = {"curriculum": pacing, "environment_steps": steps}
            folder.sync()
            kept = checkpoint.write(
                folder.checkpoints, closed, config.identity, arrays, meta, new=new, kept=saved.hashes
            )
            saved = saved._replace(hashes=kept)
        frontier = mean_frontier(curriculum, contexts, setting)
        watch(Progress(closed, float(played.success.mean()), played.metrics, evaluation, frontier))


def mean_frontier(curriculum: Curriculum, part: BankPart, setting: Setting) -> dict[str, float]:
    """Mean frontier by evaluation group; it is only shown, no rule uses it."""
    level = curriculum.frontier
    if level is None:
        return {}
    return {g.name: float(level[part.evaluation_group == i].mean()) for i, g in enumerate(setting.groups)}


def _record_evaluation(folder: RunFolder, window: int, steps: int, evaluation: Evaluation) -> Evaluation:
    folder.evaluations.append(
        {
            "window": window,
            "environment_steps": steps,
            "success": evaluation.success,
            "groups": evaluation.groups,
            "outcomes": evaluation.outcomes.astype(int).tolist(),
        }
    )
    return evaluation
