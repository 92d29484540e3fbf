"""The whole training run (Algorithm 1), top to bottom: assign cells, roll out, update, report, evaluate, save.

Killed at any moment and started again with the same config, it ends with the same records: every random number is drawn
from (seed, window), the records are cut back to the checkpoint that resume.py finds, and what came after it is played
again.
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
from scout_rl.bench.settings.settings import Setting, setting
from scout_rl.curriculum import Curriculum
from scout_rl.files.lock import alone


class Progress(NamedTuple):
    """What a progress bar or a sink is told after a window."""

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
    """Run ``config`` in the folder ``path``, or continue what is there; stop when ``until`` windows are closed.

    Stopping early shortens nothing: schedules and evaluations are those of the whole budget. ``seed_stream`` draws the
    cells as runs did before they used the curriculum's own generator, so that old records can be had again.
    """
    chosen = setting(config.setting)
    bank = load_bank(chosen)
    require_sources(path, config, bank)
    last = config.windows if until is None else min(until, config.windows)
    with alone(path):
        folder = RunFolder(path, config, bank, say, seed_stream=seed_stream)
        _train(config, folder, chosen, bank, watch, say, last)


def _train(
    config: RunConfig,
    folder: RunFolder,
    chosen: Setting,
    bank: ContextBank,
    watch: Callable[[Progress], None],
    say: Callable[[str], None],
    until: int,
) -> None:
    path = folder.path
    found, finished = find_start(folder, config, say)
    if finished:
        say(f"{path} is finished: all {config.windows} windows are there; without a checkpoint its policy is not")
        return
    folder.claim()
    contexts = bank.train
    ladder = run_ladder(path, config, chosen, bank, say)
    parts = make_parts(config, chosen, bank)
    folder.cut(0 if found is None else found.window, len(contexts))
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
    if found is not None:
        say(f"continuing {path} from window {found.window}")
        curriculum.load_state_dict({**found.meta["curriculum"], "arrays": found.parts["curriculum"]})
        state, saved = restore(state, found)
        steps = found.meta["environment_steps"]
    if curriculum.windows < until:
        folder.label(curriculum.windows)
    clock = time.perf_counter()
    if found is None:
        _evaluate(folder, 0, 0, parts.evaluate(state))

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
        evaluation = _evaluate(folder, closed, steps, parts.evaluate(state)) if due else None
        now = time.perf_counter()
        folder.timing.append({"window": window, "seconds": round(now - clock, 4)})
        clock = now
        if closed % config.checkpoint_every == 0 or last:
            paced = curriculum.state_dict()
            learned, new, saved = saved.next(state)
            arrays = {"learner": learned, "curriculum": paced.pop("arrays")}
            meta = {"curriculum": paced, "environment_steps": steps}
            folder.sync()
            kept = checkpoint.write(
                folder.checkpoints, closed, config.identity, arrays, meta, new=new, kept=saved.hashes
            )
            saved = saved.written(kept)
        frontier = mean_frontier(curriculum, contexts, chosen)
        watch(Progress(closed, float(played.success.mean()), played.metrics, evaluation, frontier))


def mean_frontier(curriculum: Curriculum, part: BankPart, chosen: Setting) -> dict[str, float]:
    """By evaluation group; for showing, no rule sees it."""
    level = curriculum.frontier
    if level is None:
        return {}
    return {g.name: float(level[part.evaluation_group == i].mean()) for i, g in enumerate(chosen.groups)}


def _evaluate(folder: RunFolder, window: int, steps: int, found: Evaluation) -> Evaluation:
    folder.evaluations.append(
        {
            "window": window,
            "environment_steps": steps,
            "success": found.success,
            "groups": found.groups,
            "outcomes": found.outcomes.astype(int).tolist(),
        }
    )
    return found
