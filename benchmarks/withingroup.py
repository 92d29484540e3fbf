"""Why one pooled frontier keeps the high band here and loses it in the paper: bands, shares and constants.

The paper says that the low band dominates the pooled statistics; it prints neither the bands nor their shares.
`fetch-withingroup` has half of its goals 0.1 to 0.2 m above the lying object and half 0.35 to 0.45 m. This trains one
rule on a development seed with other bands, shares or constants, all else equal, and prints a JSON line.

    python -m benchmarks.withingroup --low-band 0.01 0.04 --rule group-frontier --preset paper --windows 2400
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from benchmarks.development import held_out, parse_constants

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.presets import PRESETS
from scout_rl.bench.settings.settings import SETTINGS, Bound, Group

STOCK = SETTINGS["fetch-withingroup"]
LOW, HIGH = (next(b for b in group.bounds if b.feature == "goal_height") for group in STOCK.groups)
AWAY = Bound("distance", 0.1, float("inf"))
"""Excludes goals that are reached at the start, however low the band; bands from 0.1 m up are unchanged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--low", type=float, default=0.5, help="share of contexts in the low band")
    parser.add_argument("--low-band", type=float, nargs=2, default=[LOW.low, LOW.high], help="goal heights (m)")
    parser.add_argument("--high-band", type=float, nargs=2, default=[HIGH.low, HIGH.high], help="goal heights (m)")
    parser.add_argument("--rule", default="group-frontier")
    parser.add_argument("--constants", nargs="*", default=[], metavar="NAME=VALUE", help="of the rule")
    parser.add_argument("--preset", default="tuned", choices=sorted(PRESETS))
    parser.add_argument("--windows", type=int, default=STOCK.windows)
    parser.add_argument("--seed", type=int, default=40)
    args = parser.parse_args()
    groups = (
        Group("low", args.low, (Bound("goal_height", *args.low_band), AWAY)),
        Group("high", 1 - args.low, (Bound("goal_height", *args.high_band), AWAY)),
    )
    key = f"{STOCK.key}-varied"
    SETTINGS[key] = replace(STOCK, key=key, groups=groups)
    config = RunConfig(
        setting=key,
        rule=args.rule,
        seed=args.seed,
        preset=args.preset,
        windows=args.windows,
        constants=parse_constants(args.constants),
    )
    print(json.dumps({**vars(args), **held_out(config)}))


if __name__ == "__main__":
    main()
