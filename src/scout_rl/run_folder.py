"""The folder of a run: whose it is, its tables, and what a restart cuts off.

run.json             config, bank hash, versions, hash of our source, what it ran on
config.json, windows.jsonl, events.jsonl, frontier.int8    the curriculum's own records (records.py)
evaluations.jsonl    a row an evaluation: outcome of every held-out context
metrics.jsonl        a row a window: environment steps and the learner's numbers
timing.jsonl         a row a window: seconds; the one file that differs between equal runs
ladder.npz, ladder.json    of a policy ladder: the starts, and each context's source (run_ladder.py)
checkpoints/         the newest two (checkpoint.py)
.lock                empty; held by the process that trains the run (run_lock.py)
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scout_rl.cache import code_hash
from scout_rl.hardware import ran_on
from scout_rl.records import JsonLines
from scout_rl.run_config import RunConfig, difference
from scout_rl.stored import RUN, SCHEMA, read_run

__all__ = ["RunFolder", "read_run", "source", "versions"]

PACKAGES = ("scout-rl", "numpy", "jax", "jaxlib", "equinox", "optax", "minigrid", "gymnasium", "mujoco")

NUMBERS = (
    "rules/*.py",
    "learners/*.py",
    "families/**/*.py",
    *(
        f"{name}.py"
        for name in ("bank", "curriculum", "episodes", "evaluate", "goal_rollout", "ladder", "outcome_checks")
    ),
    *(
        f"{name}.py"
        for name in ("policy_attempts", "policy_ladder", "rollout", "run_ladder", "stage", "train", "window")
    ),
)
"""Our own files that a run's numbers come from; what the config holds of settings and presets is in the config."""


class RunFolder:
    """Claims a folder for a config, or refuses one that is another run's."""

    def __init__(self, path: Path, config: RunConfig, bank_sha256: str, say: Callable[[str], None]) -> None:
        self.path = path
        about = {
            "schema": SCHEMA,
            "kind": "run",
            "config": config.as_dict(),
            "bank_sha256": bank_sha256,
            "versions": versions(),
            "source": source(),
            "ran_on": ran_on(),
        }
        try:
            path.mkdir(parents=True, exist_ok=True)
            if (path / RUN).exists():
                _same_run(path, about, say)
            else:
                partial = path / f"{RUN}.partial"
                partial.write_text(json.dumps(about, indent=1) + "\n")
                os.replace(partial, path / RUN)
        except OSError as error:
            raise ValueError(f"the run folder {path} cannot be written: {error.strerror}") from error
        self.evaluations = JsonLines(path / "evaluations.jsonl")
        self.metrics = JsonLines(path / "metrics.jsonl")
        self.timing = JsonLines(path / "timing.jsonl")

    @property
    def checkpoints(self) -> Path:
        """Where they are."""
        return self.path / "checkpoints"

    def cut(self, windows: int, *, evaluated: bool) -> None:
        """Keep what belongs to the first ``windows`` windows; the evaluation after them too, if ``evaluated``."""
        self.evaluations.cut(windows + 1 if evaluated else 0)
        self.metrics.cut(windows)
        self.timing.cut(windows)


def versions() -> dict[str, str]:
    """Of everything that can change a number."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def source() -> str:
    """Which version of our own files this is: the package's number stays the same between releases."""
    return code_hash(*NUMBERS)[:12]


def _same_run(path: Path, about: dict[str, Any], say: Callable[[str], None]) -> None:
    there = read_run(path)
    differs = difference(there["config"], about["config"])
    if differs is not None:
        raise ValueError(f"{path} holds another run: {differs}; choose another folder, or the same config")
    if there["bank_sha256"] != about["bank_sha256"]:
        raise ValueError(f"{path} was trained on another bank: {there['bank_sha256'][:12]}… there")
    for name, version in there["versions"].items():
        if about["versions"].get(name) != version:
            say(f"{path} was started with {name} {version}, this is {about['versions'].get(name)}: numbers may differ")
    before = {"source": there.get("source"), **there.get("ran_on", {})}
    now = {"source": about["source"], **about["ran_on"]}
    for name in ("source", "device", "threads"):
        if before.get(name) not in (None, now[name]):
            say(f"{path} was started with {name} {before[name]}, this is {now[name]}: numbers may differ")
