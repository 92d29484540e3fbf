"""The folder of a run: its identity, its tables, and how they are cut back on a restart.

run.json             config, bank hash and labels, versions, hash of our source, machine; the same for continuations
config.json, windows.jsonl, events.jsonl, frontier.int8    the curriculum's records (records/tables.py)
evaluations.jsonl    a row per evaluation: outcome of every held-out context
metrics.jsonl        a row per window: environment steps and the learner's numbers
timing.jsonl         a row per window: seconds; the one file that differs between equal runs
ladder.npz, ladder.json    only with a policy ladder: the starts, and each context's source (ladder.py)
checkpoints/         the newest two (checkpoint.py)
.lock                empty; held by the process that trains the run (files/lock.py)
"""

from __future__ import annotations

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
from scout_rl.files.cache import code_hash, installed_versions
from scout_rl.files.lock import LOCK
from scout_rl.files.refusal import Refusal
from scout_rl.records.made_with import ALONE, BATCH, ENGINE, WIDTH, continued_by
from scout_rl.records.stored import RUN, SCHEMA, read_run
from scout_rl.records.tables import EVALUATIONS, JsonLines, cut_records

__all__ = ["RunFolder", "read_run", "source", "versions"]

CELLS, CURRICULUM = "cells_from", "curriculum"
"""In run.json: the generator that drew the cells. Old runs lack it: they drew from ``PCG64(seed)``."""
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
    "bench/run/batch.py",
    "bench/run/ladder.py",
    "bench/run/opened.py",
    "bench/run/parts.py",
    "bench/run/train.py",
    "bench/run/window.py",
)
"""Source files that determine a run's numbers. Settings and presets are not listed: the config holds their values."""


class RunFolder:
    """A run's folder. It refuses the folder of another run, and writes nothing before `claim`.

    ``width`` is that of the batch that trains the run; None for a process of its own.
    """

    def __init__(
        self,
        path: Path,
        config: RunConfig,
        bank: ContextBank,
        say: Callable[[str], None],
        *,
        seed_stream: bool = False,
        width: int | None = None,
    ) -> None:
        self.path, self.checkpoints = path, path / "checkpoints"
        self.about = {
            "schema": SCHEMA,
            "kind": "run",
            "config": config.as_dict(),
            "bank_sha256": bank.sha256,
            "groups": bank.labels([group.name for group in setting(config.setting).groups]),
            "versions": versions(),
            "source": source(),
            "ran_on": {**ran_on(), **({} if width is None else {ENGINE: BATCH, WIDTH: width})},
            **({} if seed_stream else {CELLS: CURRICULUM}),
        }
        self.stored = read_run(path) if (path / RUN).exists() else None
        """Its run.json as it was when the folder was opened; None where there was none."""
        if self.stored is not None:
            _require_same_run(path, self.stored, self.about, say)
        self.evaluations = JsonLines(path / EVALUATIONS)
        self.metrics = JsonLines(path / METRICS)
        self.timing = JsonLines(path / TIMING)

    @property
    def seed_stream(self) -> bool:
        """Whether the cells are drawn as in old records (`drawn_from_seed`)."""
        return drawn_from_seed(self.about if self.stored is None else self.stored)

    def claim(self) -> None:
        """Write the run.json of a new run."""
        if self.stored is None:
            self._write(self.about)

    def label(self, window: int) -> None:
        """Add to run.json what makes the windows from ``window`` on, if it has changed."""
        if self.stored is not None and (about := continued_by(self.stored, self.about, window)) != self.stored:
            self._write(about)

    def sync(self) -> None:
        """Flush every record to the disk: call it before writing a checkpoint that counts them."""
        sync(path for path in self.path.iterdir() if path.is_file() and path.name != LOCK)
        sync([self.path])

    def cut(self, windows: int, n_contexts: int) -> None:
        """Keep the first ``windows`` windows in every table; with 0 the tables are emptied."""
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
    """Whether a run's cells come from ``PCG64(seed)``, as before runs used the curriculum's generator."""
    return CELLS not in about


def versions() -> dict[str, str]:
    """The versions of everything that can change a number."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **installed_versions(PACKAGES),
    }


def source() -> str:
    """Hash of our source files; the package's version does not change between releases."""
    return code_hash(*NUMBERS)[:12]


def _require_same_run(path: Path, stored: dict[str, Any], about: dict[str, Any], say: Callable[[str], None]) -> None:
    differs = difference(stored["config"], about["config"])
    if differs is not None:
        raise Refusal(f"{path} holds another run: {differs}; choose another folder, or the same config")
    if stored["bank_sha256"] != about["bank_sha256"]:
        raise Refusal(f"{path} was trained on another bank: {stored['bank_sha256'][:12]}… there")
    for name, version in stored["versions"].items():
        if about["versions"].get(name) != version:
            say(f"{path} was started with {name} {version}, this is {about['versions'].get(name)}: numbers may differ")
    before = {"source": stored.get("source"), **stored.get("ran_on", {})}
    now = {"source": about["source"], **about["ran_on"]}
    for name in ("source", "device", "threads", ENGINE, WIDTH):
        was, is_now = (part.get(name, ALONE.get(name)) for part in (before, now))
        if was not in (None, is_now):
            say(f"{path} was started with {name} {was}, this is {is_now}: numbers may differ")
