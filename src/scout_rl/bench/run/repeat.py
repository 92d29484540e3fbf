"""Repeat a stored run: train its first windows again from its config, and compare them with the record.

A worker trains it in a temporary folder, with the record's number of threads. A run of a batch is trained in a batch of
the same width, whose other lanes are copies of it: kernels depend on the width, not on what is in the other lanes. The
budget stays the stored one, so that no schedule and no evaluation changes. It stops at the first difference, or after
the requested windows.
"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl.bench.families import load_bank
from scout_rl.bench.hardware import n_threads
from scout_rl.bench.learners import learner_constants, make_learner
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import drawn_from_seed
from scout_rl.bench.run.ladder import ABOUT, LADDER, require_sources
from scout_rl.bench.run.signals import undisturbed
from scout_rl.bench.run.trace import Rows, first_difference, folder_rows, record_rows, windows_in
from scout_rl.bench.run.worker import WorkerProcess, batch_job, job
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import unpack
from scout_rl.records.made_with import BATCH, ENGINE, WIDTH, makers
from scout_rl.records.stored import RUN, read_run
from scout_rl.rules.field_types import require_types

PREFIX = "scout-repeat-"
DEPENDS_ON = {
    "source": "source",
    "device": "device",
    "processor": "processor",
    "threads": "number of threads",
    ENGINE: ENGINE,
    WIDTH: "width of the batch",
}
"""What numbers may depend on besides versions, with its name for the user; old records lack it."""
ON_A_GPU = {"deterministic": "XLA's deterministic operations"}


class Stored(NamedTuple):
    """A record to compare with."""

    path: Path
    about: dict[str, Any]
    """Its run.json."""
    windows: int
    """How many are compared."""
    rows: Rows

    @property
    def threads(self) -> int | None:
        """Number of threads that made it; None if unknown."""
        count: int | None = self.about.get("ran_on", {}).get("threads")
        return count

    @property
    def width(self) -> int | None:
        """Width of the batch that made it; None for a run alone."""
        on: dict[str, Any] = self.about.get("ran_on", {})
        return int(on[WIDTH]) if on.get(ENGINE) == BATCH else None


def read(path: Path, windows: int) -> Stored:
    """The first windows of a compact record or of a run folder, or all if it has fewer."""
    if windows < 1:
        raise Refusal(f"--windows is {windows}, but must be at least 1")
    with reading(path):
        if path.is_dir():
            about, closed = read_run(path), min(windows, windows_in(path))
            rows = folder_rows(path, closed)
        else:
            record = unpack(path)
            about, closed = record.about, min(windows, len(record.context))
            rows = record_rows(record, closed)
    if closed == 0:
        raise Refusal(f"{path} holds no closed window yet: there is nothing to repeat")
    return Stored(path, about, closed, rows)


def config_of(stored: Stored) -> RunConfig:
    """Its config; constants that are newer than the record take the defaults of learner and rule, not of a preset.

    Refuse a config that this version cannot repeat (other fields, another bank).
    """
    with reading(stored.path, "cannot be repeated with this version"):
        fields = dict(stored.about["config"])
        unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(RunConfig)})
        if unknown:
            raise Refusal(f"{stored.path} is of another version: its config has {', '.join(unknown)}")
        require_types(RunConfig, fields)
        setting = setting_of(fields["setting"])
        defaults = learner_constants(make_learner(fields.get("algorithm") or setting.learner, {}))
        config = RunConfig(**{**fields, "learner": {**defaults, **fields.get("learner", {})}})
        before, today = stored.about["bank_sha256"], pinned_hashes().get(setting.key, "")
        if before != today:
            raise Refusal(
                f"{stored.path} was trained on bank {before[:12]}…, and {setting.key!r} now has {today[:12]}…: "
                "it cannot be repeated with this version"
            )
    return config


def repeat(
    stored: Stored,
    *,
    threads: int = 0,
    watch: Callable[[int], None] = lambda windows: None,
    say: Callable[[list[str]], None] = lambda unlike: None,
    every: float = 0.2,
) -> str | None:
    """Train it again and return the first difference in a sentence; the temporary folder is always deleted.

    ``watch`` receives the number of windows done. ``say`` is called once, with how this machine and its versions
    differ, or may differ, from the record's.
    """
    config = config_of(stored)
    if config.ladder_from:
        with reading(stored.path, "cannot be repeated without the runs that its ladder comes from"):
            require_sources(stored.path, config, load_bank(setting_of(config.setting)))
    config = dataclasses.replace(config, checkpoint_every=config.windows)
    compared_machines = False
    with undisturbed():
        temporary = tempfile.TemporaryDirectory(prefix=PREFIX)
    with temporary as out:
        folder = Path(out) / "run"
        folder.mkdir()
        for name in (LADDER, ABOUT):
            if (stored.path / name).is_file():
                shutil.copy(stored.path / name, folder / name)
        count = threads or stored.threads or n_threads()
        if stored.width is None:
            work = job("run", config.as_dict(), out, count, stored.windows, seed_stream=drawn_from_seed(stored.about))
        else:
            work = batch_job("run", {"run": config.as_dict()}, out, count, stored.width, stored.windows)
        worker = WorkerProcess(work)
        try:
            worker.start()
            while True:
                ended = worker.ended()  # asked before reading, so that the last read sees every row
                if not compared_machines and (folder / RUN).exists():
                    compared_machines = True
                    say([*differing(stored.about, read_run(folder)), *continued(stored.about, stored.windows)])
                done = min(windows_in(folder), stored.windows)
                watch(done)
                difference = first_difference(stored.rows, folder_rows(folder, done), done) if done else None
                if difference is not None or done == stored.windows:
                    return difference
                if ended:
                    raise Refusal(f"{stored.path} cannot be repeated: {worker.error() or 'it ended too early'}")
                time.sleep(every)
        finally:
            worker.close()


def differing(stored: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """Differing or unknown versions, source and machine: ``jax 0.11.2 there, 0.10.2 here``."""
    (_, before), (_, now) = makers(stored)[0], makers(current)[0]
    words = DEPENDS_ON | ON_A_GPU if now.get("backend") == "gpu" else DEPENDS_ON
    sentences = []
    for name in [*stored.get("versions", {}), *words]:
        was, is_now = before.get(name), now.get(name, "none")
        if was is None:
            sentences.append(f"unknown {words[name]} there, {is_now} here")
        elif _relevant(name, was) != _relevant(name, is_now):
            sentences.append(f"{words.get(name, name)} {was} there, {is_now} here")
    return sentences


def continued(about: dict[str, Any], windows: int) -> list[str]:
    """What changed within the first windows of a record when the run was continued."""
    sentences = []
    for (_, before), (first, after) in itertools.pairwise(makers(about)):
        for name in sorted(before.keys() | after.keys()):
            was, then = (str(maker.get(name, "unknown")) for maker in (before, after))
            if first < windows and name != "cores" and _relevant(name, was) != _relevant(name, then):
                sentences.append(f"windows from {first} on were made with {name} {then}, those before with {was}")
    return sentences


def _relevant(name: str, version: Any) -> Any:
    """The part of a version that can change a number: not Python's patch release."""
    return version.split(".")[:2] if name == "python" else version
