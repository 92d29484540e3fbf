"""Five rules on the TRL example, three seeds each: train, then draw the held-out curves from the records.

python -m benchmarks.trl_rules OUT                     # half a minute per run; goes on where it was cut
python -m benchmarks.trl_rules OUT --rules ability     # some of them
python -m benchmarks.trl_rules OUT --images docs/images
python -m benchmarks.trl_rules OUT --size gpu --minutes 6 --seeds 40   # the second size
python -m benchmarks.trl_rules OUT --rules ability ability-alike --seeds 43 44 45 46 --held-out 512 --name trl-alike

The runs are kept in OUT/NAME. Without --images the curves and their picture are written to OUT.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEEDS = (40, 41, 42)
ALIKE = "ability-alike"
"""`ability` with all prompts drawn equally often: ``eps`` is 1."""
COLOURS = {"ability": "C0", "scout": "C1", "adaback": "C2", "random": "C3", "target": "black", ALIKE: "C4"}


def train(args: argparse.Namespace, out: Path) -> None:
    import torch

    from scout_rl.rules import Ability

    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("trl_addition", ROOT / "examples/trl_addition.py")
    addition = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(addition)
    size = addition.SIZES[args.size]
    own = {"taught": args.taught, "steps": args.steps, "held_out": args.held_out}
    size = size._replace(**{name: value for name, value in own.items() if value})
    options, kept = {**size._asdict(), "minutes": args.minutes}, out / "options.json"
    if kept.exists() and json.loads(kept.read_text()) != options:
        raise SystemExit(f"{out} holds runs with other options ({kept.name}): give another --name or OUT")
    out.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(options) + "\n")
    for seed in args.seeds:
        for rule in args.rules:
            folder = out / rule / str(seed)
            if (folder / "done").exists():
                continue
            if folder.exists():
                shutil.rmtree(folder)  # it was cut
            model = addition.base_model(size, out / "base.pt")
            made = Ability(eps=1.0) if rule == ALIKE else rule
            addition.train(made, seed, size, model, str(folder), args.minutes)
            (folder / "done").touch()


def curve(folder: Path) -> list[list[float]]:
    """(step, share of held-out bare prompts solved), from the records of a run."""
    rows = map(json.loads, (folder / "records/evaluations.jsonl").read_text().splitlines())
    return [[row["window"], row["success"]] for row in rows]


def draw(out: Path, rules: Sequence[str], seeds: Sequence[int], images: Path, name: str) -> None:
    by_rule = {rule: {str(seed): curve(out / rule / str(seed)) for seed in seeds} for rule in rules}
    images.mkdir(parents=True, exist_ok=True)
    (images / f"{name}.json").write_text(json.dumps(by_rule, indent=1) + "\n")

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for rule, by_seed in by_rule.items():
        for i, points in enumerate(by_seed.values()):
            steps, solved = zip(*points, strict=True)
            axes.plot(steps, solved, color=COLOURS[rule], alpha=0.8, label=None if i else rule)
    axes.set(xlabel="step of GRPO", ylabel="held-out bare prompts solved", ylim=(-0.02, 1))
    axes.legend()
    figure.savefig(images / f"{name}.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of the runs")
    parser.add_argument("--rules", nargs="+", default=list(COLOURS)[:5], choices=list(COLOURS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--size", choices=("small", "gpu"), default="small")
    parser.add_argument("--minutes", type=float, help="of GRPO per run at most")
    parser.add_argument("--taught", type=int, help="batches of single columns before GRPO")
    parser.add_argument("--steps", type=int, help="steps of GRPO")
    parser.add_argument("--held-out", type=int, help="prompts of the evaluation")
    parser.add_argument("--images", type=Path)
    parser.add_argument("--name", help="of the runs and the curves' files; trl-rules, or trl-rules-gpu")
    args = parser.parse_args()
    name = args.name or ("trl-rules" if args.size == "small" else f"trl-rules-{args.size}")
    train(args, args.out / name)
    draw(args.out / name, args.rules, args.seeds, args.images or args.out, name)
    print(args.images or args.out)


if __name__ == "__main__":
    main()
