"""The folder of a run: whose it is, its tables, and what a restart cuts off.

run.json             config, bank hash and labels, versions, hash of our source, machine; what continued it
config.json, windows.jsonl, events.jsonl, frontier.int8    the curriculum's own records (records/tables.py)
evaluations.jsonl    a row an evaluation: outcome of every held-out context
metrics.jsonl        a row a window: environment steps and the learner's numbers
timing.jsonl         a row a window: seconds; the one file that differs between equal runs
ladder.npz, ladder.json    of a policy ladder: the starts, and each context's source (ladder.py)
checkpoints/         the newest two (checkpoint.py)
.lock                empty; held by the process that trains the run (files/lock.py)
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scout_rl.bench.hardware import ran_on
from scout_rl.bench.run.config import RunConfig, difference
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import setting
from scout_rl.files.atomic import sync, write_bytes
from scout_rl.files.cache import code_hash
from scout_rl.files.lock import LOCK
from scout_rl.files.refusal import Refusal
from scout_rl.records.made_with import noted
from scout_rl.records.stored import RUN, SCHEMA, read_run
from scout_rl.records.tables import EVALUATIONS, JsonLines, cut_records

__all__ = ["RunFolder", "read_run", "source", "versions"]

CELLS, CURRICULUM = "cells_from", "curriculum"
"""In run.json: whose random numbers drew the cells. Runs that do not say it drew from those of their seed."""
METRICS, TIMING = "metrics.jsonl", "timing.jsonl"
PACKAGES = ("scout-rl", "numpy", "jax", "jaxlib", "equinox", "optax", "minigrid", "gymnasium", "mujoco")

NUMBERS = (
    "rules/*.py",
    "curriculum/curriculum.py",
    "curriculum/checks.py",
    "codecs/*.py",
    "ladders/*.py",
    "bench/settings/bank.py",
    "bench/families/**/*.py",
    "bench/ladders/*.py",
    "bench/learners/*.py",
    "bench/rollouts/device.py",
    "bench/rollouts/evaluate.py",
    "bench/rollouts/host.py",
    "bench/run/ladder.py",
    "bench/run/parts.py",
    "bench/run/train.py",
    "bench/run/window.py",
)
"""Our own files that a run's numbers come from; what the config holds of settings and presets is in the config."""


class RunFolder:
    """Refuses a folder that is another run's; writes nothing before `claim`."""

    def __init__(
        self,
        path: Path,
        config: RunConfig,
        bank: ContextBank,
        say: Callable[[str], None],
        *,
        seed_stream: bool = False,
    ) -> None:
        self.path = path
        self.about = {
            "schema": SCHEMA,
            "kind": "run",
            "config": config.as_dict(),
            "bank_sha256": bank.sha256,
            "groups": bank.labels([group.name for group in setting(config.setting).groups]),
            "versions": versions(),
            "source": source(),
            "ran_on": ran_on(),
            **({} if seed_stream else {CELLS: CURRICULUM}),
        }
        self.there = read_run(path) if (path / RUN).exists() else None
        """What its run.json said when it was opened."""
        if self.there is not None:
            _same_run(path, self.there, self.about, say)
        self.evaluations = JsonLines(path / EVALUATIONS)
        self.metrics = JsonLines(path / METRICS)
        self.timing = JsonLines(path / TIMING)

    @property
    def seed_stream(self) -> bool:
        """Whether the run's cells are drawn as those of the first records."""
        return drawn_from_seed(self.about if self.there is None else self.there)

    @property
    def checkpoints(self) -> Path:
        """Where they are."""
        return self.path / "checkpoints"

    def claim(self) -> None:
        """Write the run.json of a run that begins."""
        if self.there is None:
            self._write(self.about)

    def label(self, window: int) -> None:
        """Note in run.json what makes the windows from ``window`` on, where that is not what made those before."""
        if self.there is not None and (about := noted(self.there, self.about, window)) != self.there:
            self._write(about)

    def sync(self) -> None:
        """Have every record on the disk, before a checkpoint is that knows of them."""
        sync(path for path in self.path.iterdir() if path.is_file() and path.name != LOCK)
        sync([self.path])

    def cut(self, windows: int, n_contexts: int) -> None:
        """Keep what belongs to the first ``windows`` windows, in every table; of a run that begins, nothing."""
        cut_records(self.path, windows, frontier_bytes=windows * n_contexts)
        self.evaluations.cut(windows + 1 if windows else 0)
        self.metrics.cut(windows)
        self.timing.cut(windows)

    def _write(self, about: dict[str, Any]) -> None:
        try:
            write_bytes(self.path / RUN, (json.dumps(about, indent=1) + "\n").encode())
        except OSError as error:
            raise Refusal(f"the run folder {self.path} cannot be written: {error.strerror}") from error


def drawn_from_seed(about: dict[str, Any]) -> bool:
    """Whether a run's cells come from ``PCG64(seed)``: it was begun before runs used the curriculum's generator."""
    return CELLS not in about


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


def _same_run(path: Path, there: dict[str, Any], about: dict[str, Any], say: Callable[[str], None]) -> None:
    differs = difference(there["config"], about["config"])
    if differs is not None:
        raise Refusal(f"{path} holds another run: {differs}; choose another folder, or the same config")
    if there["bank_sha256"] != about["bank_sha256"]:
        raise Refusal(f"{path} was trained on another bank: {there['bank_sha256'][:12]}… there")
    for name, version in there["versions"].items():
        if about["versions"].get(name) != version:
            say(f"{path} was started with {name} {version}, this is {about['versions'].get(name)}: numbers may differ")
    before = {"source": there.get("source"), **there.get("ran_on", {})}
    now = {"source": about["source"], **about["ran_on"]}
    for name in ("source", "device", "threads"):
        if before.get(name) not in (None, now[name]):
            say(f"{path} was started with {name} {before[name]}, this is {now[name]}: numbers may differ")
