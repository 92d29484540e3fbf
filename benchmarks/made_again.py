"""How much one seed says: runs of one config and seed that were trained twice, with different rounding.

Compares the records that two folders share, unless the files are equal. The committed ones of seed 100 were trained
again after the learner became faster (the same sums in another order, another machine):

    mkdir before after
    git archive d68db07 results | tar x -C before && git archive 433e44d results | tar x -C after
    python -m benchmarks.made_again before/results after/results
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from scout_rl.bench.reproduction import verdicts
from scout_rl.bench.reproduction.catalogue import catalogue
from scout_rl.records.compact import CompactRun, unpack
from scout_rl.report.measure.comparison import evaluated
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import common_window, summarise
from scout_rl.report.read.runs import find, load

WHAT = ("setting", "rule", "seed", "preset", "windows", "ladder", "levels", "constants")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    args = parser.parse_args()
    auc_gaps, first_differences = [], []
    for path in sorted(args.after.rglob("*.npz")):
        earlier = args.before / path.relative_to(args.after)
        if not earlier.exists() or earlier.read_bytes() == path.read_bytes():
            continue
        if not _same_run(earlier, path):
            print(f"{path}: not the same run any more, left out")
            continue
        first_differences.append(_first_difference(unpack(earlier), unpack(path)))
        if first_differences[-1] is None:
            print(f"{path.relative_to(args.after)}: every outcome is the same")
            continue
        runs = [summarise(load(record)) for record in (earlier, path)]
        window = common_window(run.at for run in runs)
        areas = [round(run.worst_auc(window), 3) for run in runs]
        auc_gaps.append(abs(areas[0] - areas[1]))
        row = {
            "parted_at": first_differences[-1],
            "auc": areas,
            "solved_at": [r.solved_window for r in runs],
            "final": [r.worst_final for r in runs],
        }
        print(path.relative_to(args.after), json.dumps(row))
    if auc_gaps:
        print(f"first window that differs: {sorted(w for w in first_differences if w is not None)}")
        over = {limit: sum(a > limit for a in auc_gaps) for limit in (0.05, 0.1)}
        print(f"{len(auc_gaps)} runs that parted: AUC of the worst group apart by {np.median(auc_gaps):.3f} (median)")
        print(
            f"and {max(auc_gaps):.3f} (most); by more than {', '.join(f'{limit} in {n}' for limit, n in over.items())}"
        )
    before, after = _answers(args.before), _answers(args.after)
    touched = [a for k, a in after.items() if a.claimed and _numbers(a) != _numbers(before[k])]
    changed = [(before[k].verdict, a.verdict, *k[:3]) for k, a in after.items() if a.verdict != before[k].verdict]
    print(f"{len(touched)} claims rest on other numbers; verdicts that changed:", *changed, sep="\n  ")


def _first_difference(before: CompactRun, after: CompactRun) -> int | None:
    """The first window, counted from 1, in which a start or an outcome differs."""
    n = min(len(before.success), len(after.success))
    arrays = [(before.success, after.success), (before.context, after.context), (before.level, after.level)]
    differs = np.any([(a[:n] != b[:n]).any(axis=1) for a, b in arrays], axis=0)
    return int(np.flatnonzero(differs)[0]) + 1 if differs.any() else None


def _answers(folder: Path) -> dict[tuple[object, ...], verdicts.Answer]:
    """The answers of these records to every row of the page."""
    runs = [summarise(load(path, catalogue=catalogue())) for path in find([folder])]
    blocks = [b for b in map(evaluated, group(runs)) if b is not None]
    names = ("setting", "rule", "metric", "ladder", "levels", "preset")
    return {tuple(getattr(row, name) for name in names): verdicts.answer(row, blocks) for row in verdicts.rows()}


def _numbers(answer: verdicts.Answer) -> tuple[object, object]:
    return answer.ours, answer.difference


def _same_run(before: Path, after: Path) -> bool:
    """Whether both are the same run, as far as the older record holds its config."""
    old, new = (unpack(path).about["config"] for path in (before, after))
    return all(old.get(name, new[name]) == new[name] for name in WHAT)


if __name__ == "__main__":
    main()
