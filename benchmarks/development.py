"""Train one development run and summarise the held-out curves of its groups.

Shared by the scripts that vary one thing of a setting (`conflict_geometry.py`, `doorkey_limit.py`, `withingroup.py`).
The run goes to a temporary folder, every evaluation to stderr, and the summary to the script.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from scout_rl.bench.reproduction.pairs import LAST
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.train import Progress, train
from scout_rl.files.cache import use_compilation_cache
from scout_rl.report.measure.metrics import REACHED, auc


def parse_constants(pairs: list[str]) -> dict[str, Any]:
    """`["n_min=5"]` as a dict; values are JSON where possible, else text."""
    constants: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            constants[name] = json.loads(value)
        except json.JSONDecodeError:
            constants[name] = value
    return constants


def held_out(config: RunConfig) -> dict[str, Any]:
    """Train `config`; for every group (and `all`) its AUC, last success, mean of the last five, and first 0.9."""
    use_compilation_cache()
    at: list[int] = []
    curves: dict[str, list[float]] = defaultdict(list)
    trained: list[float] = []

    def watch(progress: Progress) -> None:
        trained.append(progress.success)
        if not progress.evaluation:
            return
        at.append(progress.window)
        for group, success in {**progress.evaluation.groups, "all": progress.evaluation.success}.items():
            curves[group].append(success)
        now = {group: round(curve[-1], 2) for group, curve in curves.items()}
        frontier = {group: round(level, 2) for group, level in progress.frontier.items()}
        print(f"window {progress.window}: {now}, frontier {frontier}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run", watch=watch, say=lambda message: print(message, file=sys.stderr))
    summaries = {group: summary(at, curve) for group, curve in curves.items()}
    return {"groups": summaries, "training_success_windows_1_to_20": round(float(np.mean(trained[:20])), 3)}


def summary(at: list[int], curve: list[float]) -> dict[str, Any]:
    """The numbers of one curve over windows `at`."""
    windows = np.array(at)
    return {
        "auc": round(auc(windows, np.array(curve), (at[0], at[-1])), 3),
        "final": round(curve[-1], 3),
        f"last_{LAST}": round(float(np.mean(curve[-LAST:])), 3),
        "best": round(max(curve), 3),
        f"first_{REACHED}": next((w for w, success in zip(at, curve, strict=True) if success >= REACHED), None),
    }
