"""How much one seed says: runs of one config and seed that were made twice, with another rounding in between.

Records that both folders hold and that are not the same file are compared. The committed ones of seed 100 were made
again after the learner had been sped up (the same sums in another order, another machine):

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
from scout_rl.records.compact import CompactRun, find_results, unpack
from scout_rl.report.measure.comparison import evaluated
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import common_window, summarise
from scout_rl.report.read.runs import find, load

WHAT = ("setting", "rule", "seed", "preset", "windows", "ladder", "levels", "constants")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    apart, parted = [], []
    for path in find_results(given.after):
        other = given.before / path.relative_to(given.after)
        if not other.exists() or other.read_bytes() == path.read_bytes():
            continue
        if not _same(other, path):
            print(f"{path}: not the same run any more, left out")
            continue
        parted.append(_parted(unpack(other), unpack(path)))
        if parted[-1] is None:
            print(f"{path.relative_to(given.after)}: every outcome is the same")
            continue
        runs = [summarise(load(place)) for place in (other, path)]
        window = common_window(run.at for run in runs)
        areas = [round(run.worst_auc(window), 3) for run in runs]
        apart.append(abs(areas[0] - areas[1]))
        row = {
            "parted_at": parted[-1],
            "auc": areas,
            "solved_at": [r.solved_window for r in runs],
            "final": [r.worst_final for r in runs],
        }
        print(path.relative_to(given.after), json.dumps(row))
    if apart:
        print(f"first window that differs: {sorted(w for w in parted if w is not None)}")
        over = {limit: sum(a > limit for a in apart) for limit in (0.05, 0.1)}
        print(f"{len(apart)} runs that parted: AUC of the worst group apart by {np.median(apart):.3f} (median)")
        print(f"and {max(apart):.3f} (most); by more than {', '.join(f'{limit} in {n}' for limit, n in over.items())}")
    before, after = _answers(given.before), _answers(given.after)
    touched = [a for k, a in after.items() if a.claimed and _numbers(a) != _numbers(before[k])]
    changed = [(before[k].verdict, a.verdict, *k[:3]) for k, a in after.items() if a.verdict != before[k].verdict]
    print(f"{len(touched)} claims rest on other numbers; verdicts that changed:", *changed, sep="\n  ")


def _parted(before: CompactRun, after: CompactRun) -> int | None:
    """The first window, counted from 1, in which a start or an outcome differs."""
    n = min(len(before.success), len(after.success))
    arrays = [(before.success, after.success), (before.context, after.context), (before.level, after.level)]
    differs = np.any([(a[:n] != b[:n]).any(axis=1) for a, b in arrays], axis=0)
    return int(np.flatnonzero(differs)[0]) + 1 if differs.any() else None


def _answers(folder: Path) -> dict[tuple[object, ...], verdicts.Answer]:
    """Every row of the page, as these records answer it."""
    runs = [summarise(load(path, catalogue=catalogue())) for path in find([folder])]
    blocks = [b for b in map(evaluated, group(runs)) if b is not None]
    names = ("setting", "rule", "metric", "ladder", "levels", "preset")
    return {tuple(getattr(row, name) for name in names): verdicts.answer(row, blocks) for row in verdicts.rows()}


def _numbers(answer: verdicts.Answer) -> tuple[object, object]:
    return answer.ours, answer.difference


def _same(before: Path, after: Path) -> bool:
    """Whether both are the same run, as far as the older record says."""
    old, new = (unpack(path).about["config"] for path in (before, after))
    return all(old.get(name, new[name]) == new[name] for name in WHAT)


if __name__ == "__main__":
    main()
