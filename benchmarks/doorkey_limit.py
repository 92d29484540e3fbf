"""Why the target start learns DoorKey here and not in the paper: time limit and reward, one thing at a time.

The paper prints no episode horizon. This trains `doorkey` on a development seed with a shorter time limit than the
stock one (640 steps; the shortest solutions have 17 on average, 25 at most), all else equal, and prints a JSON line.

    python benchmarks/doorkey_limit.py --limit 100 --rule target --seed 40
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from scout_rl.cache import use_compilation_cache
from scout_rl.families.minigrid import MiniGrid
from scout_rl.report.metrics import auc
from scout_rl.run_config import RunConfig
from scout_rl.train import Progress, train

REACHED = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=640, help="steps of an episode, in training and evaluation")
    parser.add_argument("--rule", default="target")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--reward", default="success", choices=("success", "cost"))
    parser.add_argument("--windows", type=int, default=0, help="budget; 0 takes the setting's")
    parser.add_argument("--setting", default="doorkey")
    parser.add_argument("--ladder", default="manual", choices=("manual", "solver"))
    parser.add_argument("--levels", type=int, default=5, help="of the ladder")
    given = parser.parse_args()
    use_compilation_cache()
    stock = MiniGrid.simulator
    MiniGrid.simulator = lambda self, setting: replace(stock(self, setting), max_steps=given.limit)  # type: ignore[method-assign]
    config = RunConfig(
        setting=given.setting,
        rule=given.rule,
        seed=given.seed,
        windows=given.windows,
        ladder=given.ladder,
        levels=given.levels,
        learner={"reward": given.reward},
    )
    curve: list[tuple[int, float]] = []
    trained: list[float] = []

    def watch(progress: Progress) -> None:
        trained.append(progress.success)
        if progress.evaluation:
            curve.append((progress.window, progress.evaluation.success))

    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run", watch=watch)
    at, success = (np.array(column) for column in zip(*curve, strict=True))
    reached = at[success >= REACHED]
    row = {
        **vars(given),
        "windows": config.windows,
        "auc": round(auc(at, success, (int(at[0]), int(at[-1]))), 3),
        "final": round(float(success[-1]), 3),
        f"first_{REACHED}": int(reached[0]) if len(reached) else None,
        "training_success_windows_1_to_20": round(float(np.mean(trained[:20])), 3),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
