"""Why the target start learns DoorKey here and not in the paper: time limit, reward and rule, one thing at a time.

The paper prints no episode horizon. This trains a MiniGrid setting on a development seed, by default `doorkey` with a
chosen time limit (the stock one is 640 steps; the shortest solutions have 17 on average, 25 at most), all else equal,
and prints a JSON line.

    python -m benchmarks.doorkey_limit --limit 100 --rule target --seed 40
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from benchmarks.development import held_out, parse_constants

from scout_rl.bench.families.minigrid import MiniGrid
from scout_rl.bench.run.config import RunConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=0, help="steps of an episode; 0 takes the setting's")
    parser.add_argument("--rule", default="target")
    parser.add_argument("--constants", nargs="*", default=[], metavar="NAME=VALUE", help="of the rule")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--reward", default="success", choices=("success", "cost"))
    parser.add_argument("--windows", type=int, default=0, help="budget; 0 takes the setting's")
    parser.add_argument("--setting", default="doorkey")
    parser.add_argument("--ladder", default="manual", choices=("manual", "solver"))
    parser.add_argument("--levels", type=int, default=5, help="of the ladder")
    args = parser.parse_args()
    if args.limit:
        stock = MiniGrid.simulator
        MiniGrid.simulator = lambda self, setting: replace(stock(self, setting), max_steps=args.limit)  # type: ignore[method-assign]
    config = RunConfig(
        setting=args.setting,
        rule=args.rule,
        seed=args.seed,
        windows=args.windows,
        ladder=args.ladder,
        levels=args.levels,
        constants=parse_constants(args.constants),
        learner={"reward": args.reward},
    )
    print(json.dumps({**vars(args), "windows": config.windows, **held_out(config)}))


if __name__ == "__main__":
    main()
