"""One thing varied at a time on a development seed: trains a run for each variation and prints a table of all.

A variation is a list of `name=value`, separated by commas: fields of a run, `constants.NAME` of the rule,
`learner.NAME` of the learner; `-` is the unchanged run. Runs lie where `scout train --out` puts them, so the same
command continues them, and `--tell` prints the table of existing runs without training. Every row is cut at the last
window that all rows have; AUC is that of the worst group. A schedule's default length is the setting's share of
`--windows`.

    python -m benchmarks.one_thing fetch-conflict --windows 700 - constants.n_min=5 rule=mixture
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.development import parse_constants

from scout_rl.bench.reproduction.pairs import LAST
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.path import run_name
from scout_rl.bench.run.train import train
from scout_rl.bench.settings.presets import PRESETS
from scout_rl.files.cache import use_compilation_cache
from scout_rl.records.stored import RUN
from scout_rl.report.measure.metrics import REACHED, auc, common_window, solved_at, worst_curve
from scout_rl.report.read.runs import load

VARIABLE_FIELDS = ("rule", "algorithm", "preset", "ladder", "levels", "episodes")
"""Fields of a run that a variation may set."""
Curves = tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]


def varied(variation: str, **common: Any) -> RunConfig:
    """The run of one variation: `rule=scout,constants.n_min=5`."""
    parts: dict[str, dict[str, Any]] = {"": {}, "constants": {}, "learner": {}}
    for name, value in parse_constants([] if variation == "-" else variation.split(",")).items():
        part, _, inner = name.rpartition(".")
        if value == "" or part not in parts or (not part and inner not in VARIABLE_FIELDS):
            raise ValueError(f"{name!r} is no NAME=VALUE of constants., learner., {', '.join(VARIABLE_FIELDS)}")
        parts[part][inner] = value
    return RunConfig(**{**common, **parts[""], "constants": parts["constants"], "learner": parts["learner"]})


def curves(folder: Path) -> Curves:
    """Windows of the evaluations, and every group's held-out success."""
    if not (folder / RUN).exists():
        raise ValueError(f"{folder} is not there: leave out --tell to train it")
    run = load(folder)
    if len(run.evaluated_at) < 2:
        raise ValueError(f"{folder} has no two evaluations: leave out --tell to train it")
    return run.evaluated_at, run.held_out_groups


def table(rows: dict[str, Curves]) -> str:
    """Markdown, one row per variation."""
    window = common_window(at for at, _ in rows.values())
    groups = list(next(iter(rows.values()))[1])
    header = ["variation", f"AUC to {window[1]}", *(f"{g}: last {LAST} / best / first {REACHED}" for g in groups)]
    lines = [[*header, "solved at"], ["---"] * (len(header) + 1)]
    for name, (at, by_group) in rows.items():
        shared = at <= window[1]
        cut = {group: by_group[group][shared] for group in groups}
        solved = solved_at(worst_curve(cut))
        area = min(auc(at[shared], success, window) for success in cut.values())
        cells = [_of_group(at[shared], success) for success in cut.values()]
        lines.append([f"`{name}`", f"{area:.2f}", *cells, "never" if solved is None else str(at[solved])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_group(at: np.ndarray[Any, Any], success: np.ndarray[Any, Any]) -> str:
    first = next((str(w) for w, s in zip(at, success, strict=True) if s >= REACHED), "never")
    return f"{success[-LAST:].mean():.2f} / {success.max():.2f} / {first}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting")
    parser.add_argument("variation", nargs="+", metavar="NAME=VALUE[,NAME=VALUE...]")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--preset", default="tuned", choices=sorted(PRESETS))
    parser.add_argument("--windows", type=int, default=0, help="0 takes the setting's")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--tell", action="store_true", help="train nothing")
    args = parser.parse_intermixed_args()
    if len(set(args.variation)) < len(args.variation):
        parser.error("a variation is there twice")
    common = {"setting": args.setting, "seed": args.seed, "preset": args.preset, "windows": args.windows}
    try:
        configs = {variation: varied(variation, **common) for variation in args.variation}
        use_compilation_cache()
        if not args.tell:
            for config in configs.values():
                train(config, args.out / run_name(config), say=lambda message: print(message, file=sys.stderr))
        print(table({name: curves(args.out / run_name(config)) for name, config in configs.items()}))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
