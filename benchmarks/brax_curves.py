"""Success from the target start while Brax's PPO trains on examples/brax_pendulum.py, with a rule and without.

    make brax
    .venv-brax/bin/python -m benchmarks.brax_curves --seeds 40 41 42 --picture docs/images/brax-pendulum.png

Runs that `--curves` holds already are not trained again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def trained(rule: str, seed: int, steps: int, envs: int) -> dict:
    from examples import brax_pendulum

    from scout_rl import rules

    curve, began = [], time.monotonic()
    brax_pendulum.train(
        steps,
        rules.make(rule),
        seed,
        envs=envs,
        evaluations=15,
        progress=lambda step, metrics: curve.append((step, float(metrics["eval/episode_scout_success"]))),
    )
    return {"rule": rule, "seed": seed, "curve": curve, "seconds": round(time.monotonic() - began)}


def draw(rows: list[dict], title: str, unit: float, label: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    for rule, colour, words in (("ability", "#3b528b", "with ability"), ("target", "#b5651d", "from the target start")):
        for i, row in enumerate(row for row in rows if row["rule"] == rule):
            at, success = zip(*row["curve"], strict=True)
            axes.plot([x / unit for x in at], success, color=colour, label=words if i == 0 else None, linewidth=1.5)
    axes.set(xlabel=label, ylabel="success from the target start", ylim=(-0.03, 1.03), title=title)
    axes.legend(loc="best", frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[40, 41, 42])
    parser.add_argument("--steps", type=int, default=3_000_000)
    parser.add_argument("--envs", type=int, default=512)
    parser.add_argument("--curves", type=Path, default=Path("out/brax-curves.jsonl"))
    parser.add_argument("--picture", type=Path, default=Path("out/brax-pendulum.png"))
    args = parser.parse_args()
    if importlib.util.find_spec("brax") is None:
        sys.exit(print("brax is not installed here: make brax, then .venv-brax/bin/python -m benchmarks.brax_curves"))
    args.curves.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in args.curves.read_text().splitlines()] if args.curves.exists() else []
    for seed in args.seeds:
        for rule in ("ability", "target"):
            if not any((row["rule"], row["seed"]) == (rule, seed) for row in rows):
                rows.append(trained(rule, seed, args.steps, args.envs))
                with args.curves.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            row = next(row for row in rows if (row["rule"], row["seed"]) == (rule, seed))
            print(f"{rule} {seed}: {row['curve'][-1][1]:.2f} after {row['curve'][-1][0]} steps, {row['seconds']} s")
    args.picture.parent.mkdir(parents=True, exist_ok=True)
    draw(rows, "Brax PPO, eight pendulums with weak motors", 1e6, "million environment steps", args.picture)


if __name__ == "__main__":
    main()
