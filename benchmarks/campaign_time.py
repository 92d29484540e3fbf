"""How long campaigns take on this machine: seconds a window measured, runs counted.

    python -m benchmarks.campaign_time campaigns/*-small.toml
    python -m benchmarks.campaign_time campaigns/evidence.toml --seed 100

A campaign keeps every core busy with runs of one thread. So does this: for every kind of run (setting, learner, its
constants) that the files hold, one run a core is started as the campaign starts it, and ended after a few windows.
Seconds to begin, seconds a window and seconds an evaluation follow from its records; the rest is counting. Rollouts of
the MuJoCo settings always last to their time limit, so any window costs the same. MiniGrid's end at success, and a
window costs what its steps cost: two measured runs, from the target start and from the easiest one, give seconds a
window and a step, and the run's record in results/ says how many steps there were and which evaluations had a context
that ran to the time limit. Where there is no record, all steps of the untrained policy are counted: an upper bound.
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
from scout_rl.bench.campaign.machine import n_workers
from scout_rl.bench.campaign.state import record_path
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.worker import WorkerProcess, job
from scout_rl.bench.settings.settings import setting
from scout_rl.records.compact import unpack
from scout_rl.records.tables import read_rows

RESULTS = Path(__file__).resolve().parents[1] / "results"
LEVELS = 5
FIRST_SEED = 50
"""Of the measured runs; they take development seeds."""


class Pace(NamedTuple):
    """Seconds of one kind of run."""

    begin: float
    window: float
    """Of a window without steps."""
    step: float
    evaluation: float
    steps: float
    """Of a window of the untrained policy from the target start."""

    def run(self, run: PlannedRun) -> float:
        config, record = run.config, record_path(RESULTS, run)
        windows, steps = config.windows, config.windows * self.steps
        evaluations = windows // config.evaluate_every
        if self.step and record.exists():
            told = unpack(record)
            steps, evaluations = int(told.environment_steps[-1]), int((~told.outcomes.all(axis=1)).sum())
        return self.begin + windows * self.window + steps * self.step + self.evaluation * evaluations


def kind_of(config: RunConfig) -> str:
    """What the time of a window depends on."""
    return json.dumps([config.setting, config.algorithm, config.episodes, config.learner], sort_keys=True)


class Measured(NamedTuple):
    """Of a few windows of one run."""

    begin: float
    window: float
    evaluation: float
    steps: float
    """Environment steps a window."""


def measured(config: RunConfig, windows: int, workers: int) -> Pace:
    """From the target start; MiniGrid from the easiest start as well."""
    begin, window, evaluation, steps = _side_by_side(config, "target", {}, windows, workers)
    if setting(config.setting).family != "minigrid":
        return Pace(begin, window, 0.0, evaluation, steps)
    short = _side_by_side(config, "fixed", {"level": LEVELS - 1}, windows, workers)
    step = max(0.0, window - short.window) / max(1.0, steps - short.steps)
    return Pace(begin, max(0.0, short.window - step * short.steps), step, evaluation, steps)


def _side_by_side(config: RunConfig, rule: str, constants: dict[str, int], windows: int, workers: int) -> Measured:
    """``workers`` runs side by side, each for so many windows, two evaluations among them; the slowest of each."""
    fields = {**config.as_dict(), "evaluate_every": windows // 2, "rule": rule, "constants": constants}
    fields |= {"ladder": "manual", "levels": LEVELS, "ladder_from": "", "ladder_fallback": "", "checkpoint_every": 50}
    seeds = range(FIRST_SEED, FIRST_SEED + workers)
    with tempfile.TemporaryDirectory() as place:
        begun = time.time()
        started = [
            WorkerProcess(job(str(seed), RunConfig(**{**fields, "seed": seed}).as_dict(), place, 1, windows))
            for seed in seeds
        ]
        errors = [worker.error() for worker in started]
        whole = time.time() - begun
        if any(errors):
            raise SystemExit(f"{config.setting}: {next(filter(None, errors))}")
        found = [_measured(Path(place) / str(seed), whole, windows // 2) for seed in seeds]
    return Measured(*(max(values) for values in zip(*found, strict=True)))


def _measured(folder: Path, whole: float, every: int) -> Measured:
    """Windows 0 (compiles) and 1 are left out; every ``every``-th holds an evaluation."""
    seconds = [row["seconds"] for row in read_rows(folder / "timing.jsonl")]
    steps = [row["environment_steps"] for row in read_rows(folder / "metrics.jsonl")]
    plain = [s for window, s in enumerate(seconds) if window > 1 and (window + 1) % every]
    window = sum(plain) / len(plain)
    evaluation = max(0.0, seconds[-1] - window)
    begin = max(0.0, whole - len(seconds) * window - 2 * evaluation)
    return Measured(begin, window, evaluation, (steps[-1] - steps[1]) / (len(steps) - 2))


def minutes(runs: Iterable[PlannedRun], paces: dict[str, Pace], workers: int) -> float:
    """Until the last run ends, each taken up in the file's order by the first core that is free."""
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
    given = parser.parse_args()
    workers = min(n_workers(1), given.cores)
    runs = {file: [run for run in load(file).runs if given.seed in (None, run.config.seed)] for file in given.files}
    kinds = {kind_of(run.config): run.config for group in runs.values() for run in group}
    paces: dict[str, Pace] = {}
    for key, config in kinds.items():
        paces[key] = measured(config, given.windows, workers)
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
                name: round(minutes(some, paces, workers), 1) for name, some in by_setting.items()
            }
            for name, some in by_setting.items():
                print(f"    {name}: {len(some)} runs, {table[file.stem]['settings'][name]} minutes")
    print(json.dumps({"cores": workers, "campaigns": table}))


if __name__ == "__main__":
    main()
