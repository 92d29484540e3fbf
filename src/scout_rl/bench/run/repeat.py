"""A stored run had again: trained from its config for its first windows, and compared with the record.

It is trained as a campaign's run is, in a process of its own with the record's number of threads, in a temporary
folder. Its budget stays the stored one, so that no schedule and no evaluation changes; it is ended at the first
difference, or after the windows asked for.
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

from scout_rl.bench.hardware import n_threads
from scout_rl.bench.learners import learner_constants, make_learner
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.trace import Moment, first_difference, of_folder, of_record, windows_in
from scout_rl.bench.run.worker import WorkerProcess, job, undisturbed
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.settings import setting
from scout_rl.files.damage import reading
from scout_rl.records.compact import unpack
from scout_rl.records.made_with import makers
from scout_rl.records.stored import RUN, read_run

LADDER_FILES = ("ladder.npz", "ladder.json")
PREFIX = "scout-repeat-"
DEPENDS_ON = {"source": "source", "device": "device", "processor": "processor", "threads": "number of threads"}
"""What numbers may depend on, beside versions, in words; of old records none of it is known."""
ON_A_GPU = {"deterministic": "XLA's deterministic operations"}


class Stored(NamedTuple):
    """A record to compare with."""

    path: Path
    about: dict[str, Any]
    """Its run.json."""
    windows: int
    """That are compared."""
    moments: list[Moment]

    @property
    def threads(self) -> int | None:
        """With which it was made; None where it does not say."""
        found: int | None = self.about.get("ran_on", {}).get("threads")
        return found


class Repeated(NamedTuple):
    """How it went."""

    windows: int
    """That were compared."""
    difference: str | None
    """The first one, in a sentence; None where all is equal."""
    unlike: list[str]
    """In what this machine and its versions are not the record's, or not known to be."""


def read(path: Path, windows: int) -> Stored:
    """The first windows of a compact record or of a run folder, as many as are there."""
    if windows < 1:
        raise ValueError(f"--windows is {windows}, but must be at least 1")
    with reading(path):
        if path.is_dir():
            about = read_run(path)
            there = min(windows, windows_in(path))
            moments = of_folder(path, there)
        else:
            record = unpack(path)
            about, there = record.about, min(windows, len(record.context))
            moments = of_record(record, there)
    if there == 0:
        raise ValueError(f"{path} holds no closed window yet: there is nothing to repeat")
    return Stored(path, about, there, moments)


def config_of(stored: Stored) -> RunConfig:
    """Its config; constants that came after it have the learner's and the rule's defaults, not a newer preset's.

    One that this version cannot have again (other fields, another bank) is refused.
    """
    with reading(stored.path, "cannot be repeated with this version"):
        return _config(stored)


def _config(stored: Stored) -> RunConfig:
    told = dict(stored.about["config"])
    unknown = sorted(set(told) - {field.name for field in dataclasses.fields(RunConfig)})
    if unknown:
        raise ValueError(f"{stored.path} is of another version: its config has {', '.join(unknown)}")
    own = setting(told["setting"])
    algorithm = told.get("algorithm") or own.learner
    told["learner"] = {**learner_constants(make_learner(algorithm, {})), **told.get("learner", {})}
    config = RunConfig(**told)
    there, here = stored.about["bank_sha256"], pinned_hashes().get(own.key, "")
    if there != here:
        raise ValueError(
            f"{stored.path} was trained on bank {there[:12]}…, and {own.key!r} now has {here[:12]}…: "
            "it cannot be repeated with this version"
        )
    return config


def require_sources(stored: Stored, config: RunConfig) -> None:
    """Refuse a ladder whose policies are not there; a run folder keeps the ladder itself."""
    if config.ladder == "policy" and not (stored.path / LADDER_FILES[0]).exists():
        for source in filter(None, (config.ladder_from, config.ladder_fallback)):
            if not (Path(source) / RUN).exists():
                raise ValueError(
                    f"{stored.path} starts from states of the policy trained in {source}, and that run is not there: "
                    "train it first"
                )


def repeat(
    stored: Stored,
    *,
    threads: int = 0,
    watch: Callable[[int], None] = lambda windows: None,
    say: Callable[[list[str]], None] = lambda unlike: None,
    every: float = 0.2,
) -> Repeated:
    """Train it again and compare; nothing is left behind, however this ends.

    ``watch`` is told how many windows are done, ``say`` once, as soon as it is known, what is unlike the record.
    """
    config = config_of(stored)
    require_sources(stored, config)
    config = dataclasses.replace(config, checkpoint_every=config.windows)
    count = threads or stored.threads or n_threads()
    unlike: list[str] | None = None
    with undisturbed():
        temporary = tempfile.TemporaryDirectory(prefix=PREFIX)
    with temporary as place:
        home = Path(place) / "run"
        home.mkdir()
        for name in LADDER_FILES:
            if (stored.path / name).is_file():
                shutil.copy(stored.path / name, home / name)
        worker = WorkerProcess(job("run", config.as_dict(), place, count, stored.windows))
        try:
            worker.start()
            while True:
                ended = worker.ended()  # before looking, so that the last look sees everything
                if unlike is None and (home / RUN).exists():
                    unlike = [*differing(stored.about, read_run(home)), *continued(stored.about, stored.windows)]
                    say(unlike)
                done = min(windows_in(home), stored.windows)
                watch(done)
                found = first_difference(stored.moments, of_folder(home, done), done) if done else None
                if found is not None or done == stored.windows:
                    return Repeated(done, found, unlike or [])
                if ended:
                    raise ValueError(f"{stored.path} cannot be repeated: {worker.error() or 'it ended too early'}")
                time.sleep(every)
        finally:
            worker.close()


def differing(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What of versions, source and machine is not as it was, or unknown: ``jax 0.11.2 there, 0.10.2 here``."""
    told = []
    for name, version in there.get("versions", {}).items():
        now = here["versions"].get(name, "none")
        if _counted(name, now) != _counted(name, version):
            told.append(f"{name} {version} there, {now} here")
    before, now_on = ({"source": about.get("source"), **about.get("ran_on", {})} for about in (there, here))
    depends_on = DEPENDS_ON | ON_A_GPU if now_on.get("backend") == "gpu" else DEPENDS_ON
    for name, words in depends_on.items():
        if before.get(name) is None:
            told.append(f"unknown {words} there, {now_on[name]} here")
        elif before[name] != now_on[name]:
            told.append(f"{words} {before[name]} there, {now_on[name]} here")
    return told


def continued(about: dict[str, Any], windows: int) -> list[str]:
    """What changed within the first windows of a record, because something else continued it."""
    told = []
    for (_, before), (first, after) in itertools.pairwise(makers(about)):
        for name in sorted(before.keys() | after.keys()):
            was, then = (str(made.get(name, "unknown")) for made in (before, after))
            if first < windows and name != "cores" and _counted(name, was) != _counted(name, then):
                told.append(f"windows from {first} on were made with {name} {then}, those before with {was}")
    return told


def _counted(name: str, version: str) -> str:
    """A patch release of Python changes no number."""
    return ".".join(version.split(".")[:2]) if name == "python" else version
