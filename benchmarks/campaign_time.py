"""How long campaigns take on this machine: seconds a window measured, runs counted.

    python benchmarks/campaign_time.py campaigns/*-small.toml
    python benchmarks/campaign_time.py campaigns/evidence.toml --seed 100

A campaign keeps every core busy with runs of one thread. So does this: for every kind of run (setting, learner, its
constants) that the files hold, one run a core is started as the campaign starts it, and ended after a few windows.
Seconds to begin, seconds a window and seconds an evaluation follow from its records; the rest is counting. Rollouts of
the MuJoCo settings always last to their time limit, so any window costs the same. MiniGrid's end at success: it is
measured from the target start with an untrained policy, where they are longest, and its numbers are upper bounds.
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

from scout_rl.campaign.file import Run, load
from scout_rl.campaign.machine import n_workers
from scout_rl.campaign.worker import WorkerProcess, job
from scout_rl.records import read_rows
from scout_rl.run_config import RunConfig
from scout_rl.settings import setting

FIRST_SEED = 50
"""Of the measured runs; they take development seeds."""


class Pace(NamedTuple):
    """Seconds of one kind of run."""

    begin: float
    window: float
    evaluation: float

    def run(self, config: RunConfig) -> float:
        return self.begin + config.windows * self.window + self.evaluation * (config.windows // config.evaluate_every)


def kind_of(config: RunConfig) -> str:
    """What the time of a window depends on."""
    return json.dumps([config.setting, config.algorithm, config.episodes, config.learner], sort_keys=True)


def measured(config: RunConfig, windows: int, workers: int) -> Pace:
    """``workers`` runs side by side, each for so many windows, two evaluations among them."""
    fields = {**config.as_dict(), "evaluate_every": windows // 2, "ladder": "manual", "levels": 5}
    fields |= {"ladder_from": "", "ladder_fallback": "", "constants": {}, "rule": "target", "checkpoint_every": 50}
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
        paces = [_pace(Path(place) / str(seed), whole, windows // 2) for seed in seeds]
    return Pace(*(max(values) for values in zip(*paces, strict=True)))


def _pace(folder: Path, whole: float, every: int) -> Pace:
    """Windows 0 (compiles) and 1 are left out; every ``every``-th holds an evaluation."""
    seconds = [row["seconds"] for row in read_rows(folder / "timing.jsonl")]
    plain = [s for window, s in enumerate(seconds) if window > 1 and (window + 1) % every]
    window = sum(plain) / len(plain)
    evaluation = max(0.0, seconds[-1] - window)
    return Pace(max(0.0, whole - len(seconds) * window - 2 * evaluation), window, evaluation)


def minutes(runs: Iterable[Run], paces: dict[str, Pace], workers: int) -> float:
    """Until the last run ends, each taken up in the file's order by the first core that is free."""
    free = [0.0] * workers
    for run in runs:
        heapq.heapreplace(free, free[0] + paces[kind_of(run.config)].run(run.config))
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
        begin, window, evaluation = paces[key]
        print(
            f"{config.setting} {config.algorithm}: {workers} side by side, {begin:.0f} s to begin, "
            f"{window:.2f} s a window, {evaluation:.1f} s an evaluation",
            flush=True,
        )
    table: dict[str, Any] = {}
    for file, group in runs.items():
        table[file.stem] = {"runs": len(group), "minutes": round(minutes(group, paces, workers), 1)}
        by_setting = defaultdict(list)
        for run in group:
            by_setting[run.config.setting].append(run)
        bound = any(setting(name).family == "minigrid" for name in by_setting)
        print(f"{file.stem}: {len(group)} runs, {'at most ' if bound else ''}{table[file.stem]['minutes']} minutes")
        if len(by_setting) > 1:
            for name, some in by_setting.items():
                print(f"    {name}: {len(some)} runs, {minutes(some, paces, workers):.1f} minutes")
    print(json.dumps({"cores": workers, "campaigns": table}))


if __name__ == "__main__":
    main()
