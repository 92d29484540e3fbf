"""How long all runs of a campaign take, setting by setting: on two cores, and on one node with an H200 and 16 cores.

    python -m benchmarks.table_time
    python -m benchmarks.table_time --profile PROFILE.json

Two cores: two runs at a time with one thread each. The seconds per window are those of `benchmarks.window_profile`,
which this script starts for the MuJoCo settings of the campaign; ``--profile`` takes the last line of an earlier
output instead. MiniGrid's windows become shorter while it learns, so those are medians over whole runs: the committed
records that were made on a CPU. The node: eight runs at a time with two cores each; medians over the committed records
that were made on such a node. A MuJoCo setting without a number of its own takes that of a setting with the same
simulator and as many gradient steps per window, marked ≈. What has none after that has no time; the last row says for
which share of the windows there is one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

CORES_AT_A_TIME, NODE_AT_A_TIME = 2, 8
NODE_CORES = 16


def planned(file: Path) -> dict[str, tuple[int, int]]:
    """Runs and windows of every SETTING:PRESET."""
    from scout_rl.bench.campaign.file import load

    counts: dict[str, tuple[int, int]] = {}
    for run in load(file).runs:
        key = f"{run.config.setting}:{run.config.preset}"
        runs, windows = counts.get(key, (0, 0))
        counts[key] = runs + 1, windows + run.config.windows
    return counts


def kinds(file: Path) -> dict[str, tuple[str, int]]:
    """Simulator and gradient steps per window of every SETTING:PRESET of the MuJoCo families."""
    from scout_rl.bench.campaign.file import load
    from scout_rl.bench.settings.settings import setting

    every = {f"{run.config.setting}:{run.config.preset}": run.config for run in load(file).runs}
    simulated = {key: setting(config.setting).family for key, config in every.items()}
    return {key: (simulated[key], every[key].make_learner().updates) for key in every if simulated[key] != "minigrid"}


def filled(paces: dict[str, float], kind: dict[str, tuple[str, int]]) -> dict[str, float]:
    """The paces of settings without one: the median over settings of their kind."""
    known: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for key, pace in paces.items():
        if key in kind:
            known[kind[key]].append(pace)
    return {key: statistics.median(known[k]) for key, k in kind.items() if key not in paces and known[k]}


def recorded(results: Path, *, on_node: bool) -> dict[str, float]:
    """Seconds per window of the runs made on such a node, or on fewer cores, from the records: the median over runs."""
    from scout_rl.report.read.runs import find, load

    paces: defaultdict[str, list[float]] = defaultdict(list)
    for path in find([results]):
        about = load(path).about
        if about.seconds and (about.ran_on.get("cores") == NODE_CORES) == on_node:
            paces[f"{about.setting}:{about.config['preset']}"].append(about.seconds / about.windows)
    return {key: statistics.median(values) for key, values in paces.items()}


def profiled(subjects: list[str], windows: int) -> dict[str, float]:
    """Seconds of processor time per window here and now, evaluations and checkpoints included."""
    command = [sys.executable, "-m", "benchmarks.window_profile", *subjects, "--windows", str(windows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("benchmarks.window_profile failed")
    return {key: result["window"] for key, result in json.loads(done.stdout.splitlines()[-1]).items()}


def hours(windows: int, pace: float | None, at_a_time: int) -> float | None:
    return None if pace is None else windows * pace / at_a_time / 3600


def cell(value: float | None, digits: int = 2, *, like: bool = False) -> str:
    return "–" if value is None else f"{'≈ ' * like}{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaign", type=Path, default=Path("campaigns/evidence.toml"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--profile", type=Path, help="the last line of an output of benchmarks.window_profile")
    parser.add_argument("--windows", type=int, default=20, help="profiled per setting")
    args = parser.parse_args()
    from scout_rl.bench.settings.settings import setting

    plan, node = planned(args.campaign), recorded(args.results, on_node=True)
    minigrid = {key for key in plan if setting(key.split(":")[0]).family == "minigrid"}
    if args.profile:
        here = {key: result["window"] for key, result in json.loads(args.profile.read_text()).items()}
    else:
        here = profiled(sorted(plan.keys() - minigrid), args.windows)
    here = {key: pace for key, pace in here.items() if key not in minigrid} | {
        key: pace for key, pace in recorded(args.results, on_node=False).items() if key in minigrid
    }
    kind = kinds(args.campaign)
    alike = [filled(own, kind) for own in (here, node)]
    here, node = here | alike[0], node | alike[1]
    print("| setting, preset | runs | windows | two cores: s per window | hours | node: s per window | hours |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    sums, timed_windows = [0.0, 0.0], [0, 0]
    for key, (runs, windows) in plan.items():
        paces = here.get(key), node.get(key)
        times = hours(windows, paces[0], CORES_AT_A_TIME), hours(windows, paces[1], NODE_AT_A_TIME)
        for i, time in enumerate(times):
            sums[i] += time or 0.0
            timed_windows[i] += windows if time is not None else 0
        name = "`{}`, `{}`".format(*key.split(":"))
        print(f"| {name} | {runs} | {windows:,} | {cell(paces[0], like=key in alike[0])} | ", end="")
        print(f"{cell(times[0], 1)} | {cell(paces[1], like=key in alike[1])} | {cell(times[1], 1)} |")
    total = sum(windows for _, windows in plan.values())
    shares = [f"{timed / total:.0%}" for timed in timed_windows]
    print(f"| all | {sum(runs for runs, _ in plan.values())} | {total:,} | ", end="")
    print(f"{shares[0]} | {sums[0]:.1f} | {shares[1]} | {sums[1]:.1f} |")


if __name__ == "__main__":
    main()
