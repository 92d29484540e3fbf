"""Why one pooled frontier keeps the high band here and loses it in the paper: the low band's share of the contexts.

The paper says that the low band dominates the pooled statistics, and prints no share; `fetch-withingroup` has half and
half. This trains one rule with another share on a development seed, all else equal, and prints a JSON line.

    python benchmarks/withingroup_share.py --low 0.8 --rule group-frontier --preset paper --windows 2400
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from scout_rl.cache import use_compilation_cache
from scout_rl.report.metrics import auc
from scout_rl.run_config import RunConfig
from scout_rl.settings import SETTINGS
from scout_rl.train import Progress, train

STOCK = SETTINGS["fetch-withingroup"]
LAST = 5
"""Evaluations whose mean is told beside the last one: single ones swing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--low", type=float, default=0.5, help="share of contexts in the low band")
    parser.add_argument("--rule", default="group-frontier")
    parser.add_argument("--preset", default="tuned", choices=("tuned", "paper"))
    parser.add_argument("--windows", type=int, default=STOCK.windows)
    parser.add_argument("--seed", type=int, default=40)
    given = parser.parse_args()
    use_compilation_cache()
    key = f"{STOCK.key}-{given.low:g}"
    shares = {"low": given.low, "high": 1 - given.low}
    SETTINGS[key] = replace(STOCK, key=key, groups=tuple(replace(g, share=shares[g.name]) for g in STOCK.groups))
    config = RunConfig(setting=key, rule=given.rule, seed=given.seed, preset=given.preset, windows=given.windows)
    at: list[int] = []
    curves: dict[str, list[float]] = defaultdict(list)

    def watch(progress: Progress) -> None:
        if progress.evaluation:
            at.append(progress.window)
            for band, success in progress.evaluation.groups.items():
                curves[band].append(success)
            levels = {band: round(level, 2) for band, level in progress.frontier.items()}
            print(
                f"window {progress.window}: {progress.evaluation.groups}, frontier {levels}",
                file=sys.stderr,
                flush=True,
            )

    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run", watch=watch)
    windows = np.array(at)
    row = {
        band: {
            "auc": round(auc(windows, np.array(curve), (at[0], at[-1])), 3),
            "final": round(curve[-1], 3),
            f"last_{LAST}": round(float(np.mean(curve[-LAST:])), 3),
        }
        for band, curve in curves.items()
    }
    print(json.dumps({**vars(given), "bands": row}))


if __name__ == "__main__":
    main()
