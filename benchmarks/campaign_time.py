"""How long campaigns take on this machine: seconds per window are measured, runs counted.

    python -m benchmarks.campaign_time campaigns/*-small.toml
    python -m benchmarks.campaign_time campaigns/evidence.toml --seed 100

A campaign keeps every core busy with runs of one thread, and so does this script. For every kind of run in the files
(setting, learner, its constants) it starts one run per core, as the campaign does, and ends it after a few windows. The
records give seconds to begin, per window and per evaluation; the rest is counting. MuJoCo rollouts always last to their
time limit, so all windows cost the same. MiniGrid rollouts end at success, so a window costs what its steps cost. Two
measured runs, from the target start and from the easiest one, give seconds per window and per step. The run's record in
results/ gives the number of steps, and which evaluations had a context that ran to the time limit. Without a record all
steps of the untrained policy are counted: an upper bound.
"""

from __future__ import annotations

import argparse
import heapq
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl.bench.campaign.file import PlannedRun, load
from scout_rl.bench.campaign.state import record_path
from scout_rl.bench.hardware import n_workers
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.worker import WorkerProcess, job
from scout_rl.bench.settings.settings import setting
from scout_rl.records.compact import unpack
from scout_rl.records.tables import read_rows

RESULTS = Path(__file__).resolve().parents[1] / "results"
LEVELS = 5
FIRST_SEED = 50
"""Of the measured runs, which use development seeds."""


class Pace(NamedTuple):
    """Seconds of one kind of run."""

    begin: float
    window: float
    """Seconds per window, apart from its steps."""
    step: float
    evaluation: float
    steps: float
    """Steps per window of the untrained policy from the target start."""

    def run(self, run: PlannedRun) -> float:
        config, record = run.config, record_path(RESULTS, run)
        windows, steps = config.windows, config.windows * self.steps
        evaluations = windows // config.evaluate_every
        if self.step and record.exists():
            compact = unpack(record)
            steps, evaluations = int(compact.environment_steps[-1]), int((~compact.outcomes.all(axis=1)).sum())
        return self.begin + windows * self.window + steps * self.step + self.evaluation * evaluations


def kind_of(config: RunConfig) -> str:
    """What the time of a window depends on."""
    return json.dumps([config.setting, config.algorithm, config.episodes, config.learner], sort_keys=True)


class Measured(NamedTuple):
    """Seconds and steps of a few windows of one run."""

    begin: float
    window: float
    evaluation: float
    steps: float
    """Environment steps per window."""


def measure_pace(config: RunConfig, windows: int, workers: int) -> Pace:
    """Measure from the target start; MiniGrid also from the easiest start."""
    begin, window, evaluation, steps = _side_by_side(config, "target", {}, windows, workers)
    if setting(config.setting).family != "minigrid":
        return Pace(begin, window, 0.0, evaluation, steps)
    short = _side_by_side(config, "fixed", {"level": LEVELS - 1}, windows, workers)
    step = max(0.0, window - short.window) / max(1.0, steps - short.steps)
    return Pace(begin, max(0.0, short.window - step * short.steps), step, evaluation, steps)


def _side_by_side(config: RunConfig, rule: str, constants: dict[str, int], windows: int, workers: int) -> Measured:
    """``workers`` runs side by side, each with ``windows`` windows and two evaluations; the slowest values."""
    fields = {**config.as_dict(), "evaluate_every": windows // 2, "rule": rule, "constants": constants}
    fields |= {"ladder": "manual", "levels": LEVELS, "ladder_from": "", "ladder_fallback": "", "checkpoint_every": 50}
    seeds = range(FIRST_SEED, FIRST_SEED + workers)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.time()
        processes = [
            WorkerProcess(job(str(seed), RunConfig(**{**fields, "seed": seed}).as_dict(), folder, 1, windows))
            for seed in seeds
        ]
        try:
            for worker in processes:
                worker.start()
            errors = [worker.error() for worker in processes]
        finally:
            for worker in processes:
                worker.close()
        elapsed = time.time() - begin
        if any(errors):
            raise SystemExit(f"{config.setting}: {next(filter(None, errors))}")
        results = [_read_times(Path(folder) / str(seed), elapsed, windows // 2) for seed in seeds]
    return Measured(*(max(values) for values in zip(*results, strict=True)))


def _read_times(folder: Path, elapsed: float, every: int) -> Measured:
    """Times without windows 0 (compiles) and 1; every ``every``-th window has an evaluation."""
    seconds = [row["seconds"] for row in read_rows(folder / "timing.jsonl")]
    steps = [row["environment_steps"] for row in read_rows(folder / "metrics.jsonl")]
    plain = [s for window, s in enumerate(seconds) if window > 1 and (window + 1) % every]
    window = sum(plain) / len(plain)
    evaluation = max(0.0, seconds[-1] - window)
    begin = max(0.0, elapsed - len(seconds) * window - 2 * evaluation)
    return Measured(begin, window, evaluation, (steps[-1] - steps[1]) / (len(steps) - 2))


def minutes(runs: Iterable[PlannedRun], paces: dict[str, Pace], workers: int) -> float:
    """Until the last run ends. The first free core takes the next run of the file."""
    free = [0.0] * workers
    for run in runs:
        heapq.heapreplace(free, free[0] + paces[kind_of(run.config)].run(run))
    return max(free) / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, help="only the runs of this seed")
    parser.add_argument("--windows", type=int, default=16, help="windows of each measured run")
    parser.add_argument("--cores", type=int, default=2, help="runs side by side, at most")
    args = parser.parse_args()
    workers = min(n_workers(1), args.cores)
    runs = {file: [run for run in load(file).runs if args.seed in (None, run.config.seed)] for file in args.files}
    kinds = {kind_of(run.config): run.config for group in runs.values() for run in group}
    paces: dict[str, Pace] = {}
    for key, config in kinds.items():
        paces[key] = measure_pace(config, args.windows, workers)
        begin, window, step, evaluation, steps = paces[key]
        print(
            f"{config.setting} {config.algorithm}: {workers} side by side, {begin:.0f} s to begin, "
            f"{window + steps * step:.2f} s a window of {steps:.0f} steps, {evaluation:.1f} s an evaluation",
            flush=True,
        )
    table: dict[str, Any] = {}
    for file, group in runs.items():
        table[file.stem] = {"runs": len(group), "minutes": round(minutes(group, paces, workers), 1)}
        by_setting = defaultdict(list)
        for run in group:
            by_setting[run.config.setting].append(run)
        bound = any(paces[kind_of(run.config)].step and not record_path(RESULTS, run).exists() for run in group)
        print(f"{file.stem}: {len(group)} runs, {'at most ' if bound else ''}{table[file.stem]['minutes']} minutes")
        if len(by_setting) > 1:
            table[file.stem]["settings"] = {
                name: round(minutes(setting_runs, paces, workers), 1) for name, setting_runs in by_setting.items()
            }
            for name, setting_runs in by_setting.items():
                print(f"    {name}: {len(setting_runs)} runs, {table[file.stem]['settings'][name]} minutes")
    print(json.dumps({"cores": workers, "campaigns": table}))


if __name__ == "__main__":
    main()
