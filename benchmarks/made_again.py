"""How much one seed says: runs of one config and seed that were made twice, with another rounding in between.

Records that both folders hold and that are not the same file are compared. The committed ones of seed 100 were made
again after the learner had been sped up (the same sums in another order, another machine):

    git archive d68db07 results | tar x -C /tmp
    python -m benchmarks.made_again /tmp/results results
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from scout_rl.compact import find_results, unpack
from scout_rl.report.metrics import common_window, summarise
from scout_rl.report.runs import load

WHAT = ("setting", "rule", "seed", "preset", "windows", "ladder", "levels", "constants")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    apart = []
    for path in find_results(given.after):
        other = given.before / path.relative_to(given.after)
        if not other.exists() or other.read_bytes() == path.read_bytes():
            continue
        if not _same(other, path):
            print(f"{path}: not the same run any more, left out")
            continue
        if np.array_equal(unpack(other).success, unpack(path).success):
            print(f"{path.relative_to(given.after)}: every outcome is the same")
            continue
        runs = [summarise(load(place)) for place in (other, path)]
        window = common_window(run.at for run in runs)
        areas = [round(run.worst_auc(window), 3) for run in runs]
        apart.append(abs(areas[0] - areas[1]))
        row = {"auc": areas, "solved_at": [r.solved_window for r in runs], "final": [r.worst_final for r in runs]}
        print(path.relative_to(given.after), json.dumps(row))
    if apart:
        over = {limit: sum(a > limit for a in apart) for limit in (0.05, 0.1)}
        print(f"{len(apart)} runs that parted: AUC of the worst group apart by {np.median(apart):.3f} (median)")
        print(f"and {max(apart):.3f} (most); by more than {', '.join(f'{limit} in {n}' for limit, n in over.items())}")


def _same(before: Path, after: Path) -> bool:
    """Whether both are the same run, as far as the older record says."""
    old, new = (unpack(path).about["config"] for path in (before, after))
    return all(old.get(name, new[name]) == new[name] for name in WHAT)


if __name__ == "__main__":
    main()
