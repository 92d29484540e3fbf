"""What makes a bank fit for `scout demo`: two criteria on development seeds, none of which looks at `ability`.

1. From the target start little is learned: `target` ends below 0.2 held-out success.
2. A shared schedule is slow: at the best of three lengths `anneal` needs at least half of the budget until its worst
   group is solved (at 0.9 or above, and at 0.8 or above at the next two evaluations). A run that is not solved counts
   as the budget.

It trains both rules, so that the bank is fixed before `ability` is run on it, and prints a row per seed. Runs lie where
`scout train --out` puts them: the same command continues them, and finished ones are only read.

    python -m benchmarks.demo_bank                                       # eight minutes of one core
    python -m benchmarks.demo_bank --seeds 40 --windows 6 --out out/short   # seconds
    python -m benchmarks.demo_bank multiroom-small --seeds 40            # another candidate
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.one_thing import Curves, curves

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.path import run_name
from scout_rl.bench.run.train import train
from scout_rl.bench.settings.settings import setting
from scout_rl.files.cache import use_compilation_cache
from scout_rl.report.measure.metrics import solved_at, worst_curve

SETTING = "doorkey-limited-small"
SEEDS = (40, 41)
LENGTHS = (1 / 6, 1 / 3, 1 / 2)
"""Lengths of the shared schedule that are tried, as shares of the budget."""
UNLEARNED, LATE = 0.2, 0.5
"""`target` must end below the first, `anneal` be solved after the second's share of the budget."""


def candidates(key: str, seed: int, windows: int, evaluate_every: int) -> dict[str, RunConfig]:
    """The runs of one seed: `target`, and `anneal` by its length."""
    windows = windows or setting(key).windows
    common = {"setting": key, "seed": seed, "windows": windows, "evaluate_every": evaluate_every}
    lengths = [max(1, round(share * windows)) for share in LENGTHS]
    anneal = {f"anneal {n}": RunConfig(**common, rule="anneal", constants={"T_anneal": n}) for n in lengths}
    return {"target": RunConfig(**common, rule="target"), **anneal}


def solved(run: Curves) -> int | None:
    """The window at which the run's worst group is solved."""
    at, by_group = run
    index = solved_at(worst_curve(by_group))
    return None if index is None else int(at[index])


def verdict(runs: dict[str, Curves], windows: int) -> list[str]:
    """Cells of one seed: the end of `target`, the windows of every `anneal`, and whether both criteria hold."""
    end = float(worst_curve(runs["target"][1])[-1])
    late = [solved(run) for name, run in runs.items() if name != "target"]
    best = min(windows if window is None else window for window in late)
    told = ["never" if window is None else str(window) for window in late]
    return [f"{end:.2f}", *told, "yes" if end < UNLEARNED else "no", "yes" if best >= LATE * windows else "no"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", nargs="?", default=SETTING)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--windows", type=int, default=0, help="budget; 0 takes the setting's")
    parser.add_argument("--evaluate-every", type=int, default=10, help="windows between two evaluations")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    args = parser.parse_args()
    use_compilation_cache()
    rows = []
    for seed in args.seeds:
        configs = candidates(args.setting, seed, args.windows, args.evaluate_every)
        for config in configs.values():
            name, started = run_name(config), time.process_time()
            train(config, args.out / name, say=lambda message: print(message, file=sys.stderr))
            print(f"{name}: {time.process_time() - started:.0f} s of the processor", file=sys.stderr, flush=True)
        runs = {name: curves(args.out / run_name(config)) for name, config in configs.items()}
        rows.append([str(seed), *verdict(runs, configs["target"].windows)])
    told = [f"{name}: solved at" for name in configs if name != "target"]
    header = ["seed", "target: last success", *told, f"1: below {UNLEARNED}", f"2: at {LATE} of the budget or later"]
    print(f"{args.setting}, {configs['target'].windows} windows")
    for cells in (header, ["---"] * len(header), *rows):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
