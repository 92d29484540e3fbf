"""Five rules on the TRL example, three seeds each: train, then draw the held-out curves from the records.

python -m benchmarks.trl_rules train OUT [RULE ...]    # about half a minute of one core per run
python -m benchmarks.trl_rules draw OUT                # docs/images/trl-rules.json and .png
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEEDS = (40, 41, 42)
COLOURS = {"ability": "C0", "scout": "C1", "adaback": "C2", "random": "C3", "target": "black"}


def train(out: Path, rules: list[str]) -> None:
    import torch

    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("trl_addition", ROOT / "examples/trl_addition.py")
    addition = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(addition)
    size = addition.SIZES["small"]
    out.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS:
        for rule in rules or COLOURS:
            if (out / rule / str(seed) / "done").exists():
                continue
            model = addition.base_model(size, out / "base.pt")
            addition.train(rule, seed, size, model, str(out / rule / str(seed)))
            (out / rule / str(seed) / "done").touch()


def curves(out: Path) -> dict[str, dict[str, list[list[float]]]]:
    """Per rule and seed: (step, share of held-out bare prompts solved), from the records of finished runs."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for rule in COLOURS:
        for seed in SEEDS:
            folder = out / rule / str(seed)
            if (folder / "done").exists():
                rows = map(json.loads, (folder / "records/evaluations.jsonl").read_text().splitlines())
                found.setdefault(rule, {})[str(seed)] = [[row["window"], row["success"]] for row in rows]
    return found


def draw(out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    by_rule, images = curves(out), ROOT / "docs/images"
    (images / "trl-rules.json").write_text(json.dumps(by_rule, indent=1) + "\n")
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for rule, seeds in by_rule.items():
        for i, curve in enumerate(seeds.values()):
            steps, solved = zip(*curve, strict=True)
            axes.plot(steps, solved, color=COLOURS[rule], alpha=0.8, label=None if i else rule)
    axes.set(xlabel="step of GRPO", ylabel="held-out bare prompts solved", ylim=(-0.02, 1))
    axes.legend()
    figure.savefig(images / "trl-rules.png", dpi=110)


if __name__ == "__main__":
    action, out, *rules = sys.argv[1:]
    train(Path(out), rules) if action == "train" else draw(Path(out))
