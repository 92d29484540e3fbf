"""Is there a Fetch geometry in which no fixed level serves both groups? Learning curves of `fixed`, level by level.

A pacing conflict needs a level of help that one group learns from and the other does not. Under the `tuned` learner
`fetch-conflict` has none (docs/disagreements.md). This trains `fixed` at one level on a development seed, in one of
the geometries below, and prints a JSON line with the held-out success of both groups. A geometry is chosen by these
curves alone, never by a score of SCOUT's.

    python -m benchmarks.conflict_geometry --geometry short-table --level 2 --windows 600
    python -m benchmarks.conflict_geometry --table lines.jsonl
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.development import held_out

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import SETTINGS, Bound, Group
from scout_rl.report.measure.metrics import REACHED

ANY = float("inf")


def _groups(table: tuple[float, float], air: tuple[float, float], apart: float = 0.0) -> tuple[Group, Group]:
    """Ranges of the distance on the table and of the height in the air, and the least distance in the air (metres)."""
    on_table = Group("on-table", 0.5, (Bound("goal_height", 0, 0), Bound("distance", *table)))
    return on_table, Group("in-air", 0.5, (Bound("goal_height", *air), Bound("distance", apart, ANY)))


GEOMETRIES = {
    "as-it-is": SETTINGS["fetch-conflict"].groups,
    "short-table": _groups((0.10, 0.13), (0.30, 0.45)),  # success is half of the way: help teaches nothing
    "long-table": _groups((0.25, ANY), (0.30, 0.45)),  # help saves most of a long push
    "high-air": _groups((0.10, ANY), (0.42, 0.45), apart=0.45),  # the longest ways to carry
    "short-table-high-air": _groups((0.10, 0.13), (0.42, 0.45), apart=0.45),
}


def measure(args: argparse.Namespace) -> dict[str, object]:
    """One run of `fixed`; what both groups reach."""
    key = f"fetch-conflict-{args.geometry}"
    SETTINGS[key] = replace(SETTINGS["fetch-conflict"], key=key, groups=GEOMETRIES[args.geometry])
    config = RunConfig(
        setting=key,
        rule="fixed",
        seed=args.seed,
        windows=args.windows,
        constants={"level": args.level},
        learner={"updates": args.updates} if args.updates else {},
    )
    varied = {name: getattr(args, name) for name in ("geometry", "level", "seed", "updates", "windows")}
    return {**varied, **held_out(config)}


def table(path: Path) -> None:
    """One line per geometry and level: the best of both groups, and whether the level serves both."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    for row in sorted(rows, key=lambda r: (r["geometry"], r["updates"], r["level"], r["seed"])):
        reached = {group: summary["best"] for group, summary in row["groups"].items() if group != "all"}
        best = "  ".join(f"{group} {value:.2f}" for group, value in reached.items())
        both = "both" if min(reached.values()) >= REACHED else ""
        print(
            f"{row['geometry']:22} level {row['level']}  seed {row['seed']}  {row['windows']} windows  {best}  {both}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--geometry", choices=tuple(GEOMETRIES), default="as-it-is")
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--windows", type=int, default=600)
    parser.add_argument("--updates", type=int, default=0, help="gradient steps per window; 0 takes the preset's")
    parser.add_argument("--table", type=Path, help="print what this file's lines say, and train nothing")
    args = parser.parse_args()
    if args.table:
        return table(args.table)
    print(json.dumps(measure(args)))


if __name__ == "__main__":
    main()
