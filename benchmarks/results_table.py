"""The committed runs as one table: final held-out success by group, AUC, windows to solve, n seeds.

.venv/bin/python benchmarks/results_table.py [results]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from scout_rl.compact import find_results, unpack


def windows_to_solve(at, worst):
    for i in range(len(worst) - 2):
        if worst[i] >= 0.9 and (worst[i + 1 : i + 3] >= 0.8).all():
            return int(at[i])
    return None


def main():
    found = defaultdict(list)
    for path in find_results(Path(sys.argv[1] if len(sys.argv) > 1 else "results")):
        run = unpack(path)
        config = run.about["config"]
        found[config["setting"], config["rule"], config["ladder"], config["levels"]].append((config["seed"], run))
    print("| setting | rule | ladder | seeds | final by group | worst-group AUC | windows to solve | minutes |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (setting, rule, ladder, levels), runs in sorted(found.items()):
        groups = list(runs[0][1].groups)
        final = [np.mean([run.groups[g][-1] for _, run in runs]) for g in groups]
        worst = [np.min([run.groups[g] for g in groups], axis=0) for _, run in runs]
        auc = np.median(
            [np.trapezoid(w, run.evaluated_at) / run.evaluated_at[-1] for w, (_, run) in zip(worst, runs, strict=True)]
        )
        solved = [windows_to_solve(run.evaluated_at, w) for w, (_, run) in zip(worst, runs, strict=True)]
        seeds = ", ".join(str(seed) for seed, _ in sorted(runs, key=lambda pair: pair[0]))
        when = ", ".join("-" if s is None else str(s) for s in solved)
        by_group = " ".join(f"{g} {f:.2f}" for g, f in zip(groups, final, strict=True))
        minutes = np.mean([run.seconds for _, run in runs]) / 60
        print(
            f"| {setting} | `{rule}` | {ladder} {levels} | {seeds} | {by_group} | {auc:.3f} | {when} | {minutes:.1f} |"
        )


if __name__ == "__main__":
    main()
