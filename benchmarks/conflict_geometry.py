"""Is there a Fetch geometry in which no fixed level serves both groups? Learning curves of `fixed`, level by level.

A pacing conflict needs a level of help that one group learns from and the other does not. Under the `tuned` learner
`fetch-conflict` has none (docs/disagreements.md). This trains `fixed` at one level on a development seed, in one of
the geometries below, and prints a JSON line with the held-out success of both groups. A geometry is chosen by these
curves alone, never by a score of SCOUT's.

    python benchmarks/conflict_geometry.py --geometry short-table --level 2 --windows 600
    python benchmarks/conflict_geometry.py --table lines.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from scout_rl.cache import use_compilation_cache
from scout_rl.run_config import RunConfig
from scout_rl.settings import SETTINGS, Bound, Group
from scout_rl.train import Progress, train

ANY = float("inf")
REACHED = 0.9


def _groups(table: tuple[float, float], air: tuple[float, float], apart: float = 0.0) -> tuple[Group, Group]:
    """Ranges of the distance on the table, of the height in the air and its least distance (metres)."""
    on_table = Group("on-table", 0.5, (Bound("goal_height", 0, 0), Bound("distance", *table)))
    return on_table, Group("in-air", 0.5, (Bound("goal_height", *air), Bound("distance", apart, ANY)))


GEOMETRIES = {
    "as-it-is": SETTINGS["fetch-conflict"].groups,
    "short-table": _groups((0.10, 0.13), (0.30, 0.45)),  # half of the way there is success: help teaches nothing
    "long-table": _groups((0.25, ANY), (0.30, 0.45)),  # help saves most of a long push
    "high-air": _groups((0.10, ANY), (0.42, 0.45), apart=0.45),  # the longest ways to carry
    "short-table-high-air": _groups((0.10, 0.13), (0.42, 0.45), apart=0.45),
}


def measure(given: argparse.Namespace) -> dict[str, object]:
    """One run of `fixed`; what both groups reach."""
    key = f"fetch-conflict-{given.geometry}"
    SETTINGS[key] = replace(SETTINGS["fetch-conflict"], key=key, groups=GEOMETRIES[given.geometry])
    config = RunConfig(
        setting=key,
        rule="fixed",
        seed=given.seed,
        windows=given.windows,
        constants={"level": given.level},
        learner={"updates": given.updates} if given.updates else {},
    )
    curves: dict[str, dict[int, float]] = defaultdict(dict)

    def watch(progress: Progress) -> None:
        if progress.evaluation:
            for group, success in progress.evaluation.groups.items():
                curves[group][progress.window] = round(success, 3)
            print(f"window {progress.window}: {progress.evaluation.groups}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run", watch=watch)
    first = {g: next((window for window, s in curve.items() if s >= REACHED), None) for g, curve in curves.items()}
    told = {name: getattr(given, name) for name in ("geometry", "level", "seed", "updates", "windows")}
    return {**told, "first_at_0.9": first, "best": {g: max(c.values()) for g, c in curves.items()}, "curves": curves}


def table(path: Path) -> None:
    """A line a geometry and level: the best of both groups, and whether the level serves both."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    for row in sorted(rows, key=lambda r: (r["geometry"], r["updates"], r["level"], r["seed"])):
        best = "  ".join(f"{group} {value:.2f}" for group, value in row["best"].items())
        both = "both" if min(row["best"].values()) >= REACHED else ""
        print(
            f"{row['geometry']:22} level {row['level']}  seed {row['seed']}  {row['windows']} windows  {best}  {both}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--geometry", choices=tuple(GEOMETRIES), default="as-it-is")
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--windows", type=int, default=600)
    parser.add_argument("--updates", type=int, default=0, help="gradient steps a window; 0 takes the preset's")
    parser.add_argument("--table", type=Path, help="print what this file's lines say, and train nothing")
    given = parser.parse_args()
    if given.table:
        return table(given.table)
    use_compilation_cache()
    print(json.dumps(measure(given)))


if __name__ == "__main__":
    main()
