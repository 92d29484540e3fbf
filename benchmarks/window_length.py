"""How a lead in AUC depends on the length of the window it is taken over: the same records, cut shorter.

AUC is an average over a window, so a budget that goes on after both rules have learned shrinks every lead. The paper
prints no budget for most settings. This cuts the records of two rules at several windows and prints, by length, both
AUCs of the worst group (medians over the seeds both have), the lead and the ratio.

    python -m benchmarks.window_length results/multiroom scout random
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from scout_rl.report.measure.metrics import common_window, summarise
from scout_rl.report.read.runs import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a setting's records")
    parser.add_argument("rule")
    parser.add_argument("against")
    parser.add_argument("--every", type=int, default=200, help="windows from one length to the next")
    args = parser.parse_args()
    seeds = [record.name for record in sorted((args.folder / args.rule).glob("*.npz"))]
    seeds = [name for name in seeds if (args.folder / args.against / name).exists()]
    runs = {r: [summarise(load(args.folder / r / n)) for n in seeds] for r in (args.rule, args.against)}
    first, last = common_window(run.at for both in runs.values() for run in both)
    print(f"{args.folder.name}, {len(seeds)} seeds: worst-group AUC over windows {first} to ...")
    for end in sorted({*range(args.every, last, args.every), last}):
        areas = [[r.worst_auc((first, end)) for r in both] for both in runs.values()]
        ours, theirs = (float(np.median(a)) for a in areas)
        lead = float(np.median(np.subtract(*areas)))
        ratio = f"{ours / theirs:.2f}" if theirs else "-"
        print(f"{end:6}  {args.rule} {ours:.3f}  {args.against} {theirs:.3f}  lead {lead:+.3f}  ratio {ratio}")


if __name__ == "__main__":
    main()
