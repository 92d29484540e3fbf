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

from scout_rl.bench.families import load_bank
from scout_rl.bench.hardware import n_threads
from scout_rl.bench.learners import learner_constants, make_learner
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import drawn_from_seed
from scout_rl.bench.run.ladder import ABOUT, LADDER, require_sources
from scout_rl.bench.run.signals import undisturbed
from scout_rl.bench.run.trace import Rows, first_difference, of_folder, of_record, windows_in
from scout_rl.bench.run.worker import WorkerProcess, job
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.settings import setting
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.compact import unpack
from scout_rl.records.made_with import makers
from scout_rl.records.stored import RUN, read_run
from scout_rl.rules.field_types import require_types

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
    rows: Rows

    @property
    def threads(self) -> int | None:
        """With which it was made; None where it does not say."""
        count: int | None = self.about.get("ran_on", {}).get("threads")
        return count


def read(path: Path, windows: int) -> Stored:
    """The first windows of a compact record or of a run folder, as many as are there."""
    if windows < 1:
        raise Refusal(f"--windows is {windows}, but must be at least 1")
    with reading(path):
        if path.is_dir():
            about, closed = read_run(path), min(windows, windows_in(path))
            rows = of_folder(path, closed)
        else:
            record = unpack(path)
            about, closed = record.about, min(windows, len(record.context))
            rows = of_record(record, closed)
    if closed == 0:
        raise Refusal(f"{path} holds no closed window yet: there is nothing to repeat")
    return Stored(path, about, closed, rows)


def config_of(stored: Stored) -> RunConfig:
    """Its config; constants that came after it have the learner's and the rule's defaults, not a newer preset's.

    One that this version cannot have again (other fields, another bank) is refused.
    """
    with reading(stored.path, "cannot be repeated with this version"):
        fields = dict(stored.about["config"])
        unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(RunConfig)})
        if unknown:
            raise Refusal(f"{stored.path} is of another version: its config has {', '.join(unknown)}")
        require_types(RunConfig, fields)
        own = setting(fields["setting"])
        defaults = learner_constants(make_learner(fields.get("algorithm") or own.learner, {}))
        config = RunConfig(**{**fields, "learner": {**defaults, **fields.get("learner", {})}})
        before, today = stored.about["bank_sha256"], pinned_hashes().get(own.key, "")
        if before != today:
            raise Refusal(
                f"{stored.path} was trained on bank {before[:12]}…, and {own.key!r} now has {today[:12]}…: "
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
    """Train it again and return the first difference in a sentence; nothing is left behind, however this ends.

    ``watch`` is told how many windows are done, ``say`` once in what this machine and its versions are not the
    record's, or not known to be.
    """
    config = config_of(stored)
    with reading(stored.path, "cannot be repeated without the runs that its ladder comes from"):
        require_sources(stored.path, config, load_bank(setting(config.setting)))
    config = dataclasses.replace(config, checkpoint_every=config.windows)
    said = False
    with undisturbed():
        temporary = tempfile.TemporaryDirectory(prefix=PREFIX)
    with temporary as place:
        home = Path(place) / "run"
        home.mkdir()
        for name in (LADDER, ABOUT):
            if (stored.path / name).is_file():
                shutil.copy(stored.path / name, home / name)
        count = threads or stored.threads or n_threads()
        asked = job("run", config.as_dict(), place, count, stored.windows, seed_stream=drawn_from_seed(stored.about))
        worker = WorkerProcess(asked)
        try:
            worker.start()
            while True:
                ended = worker.ended()  # before looking, so that the last look sees everything
                if not said and (home / RUN).exists():
                    said = True
                    say([*differing(stored.about, read_run(home)), *continued(stored.about, stored.windows)])
                done = min(windows_in(home), stored.windows)
                watch(done)
                difference = first_difference(stored.rows, of_folder(home, done), done) if done else None
                if difference is not None or done == stored.windows:
                    return difference
                if ended:
                    raise Refusal(f"{stored.path} cannot be repeated: {worker.error() or 'it ended too early'}")
                time.sleep(every)
        finally:
            worker.close()


def differing(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What of versions, source and machine is not as it was, or unknown: ``jax 0.11.2 there, 0.10.2 here``."""
    (_, before), (_, now) = makers(there)[0], makers(here)[0]
    words = DEPENDS_ON | ON_A_GPU if now.get("backend") == "gpu" else DEPENDS_ON
    sentences = []
    for name in [*there.get("versions", {}), *words]:
        was, here_is = before.get(name), now.get(name, "none")
        if was is None:
            sentences.append(f"unknown {words[name]} there, {here_is} here")
        elif _counted(name, was) != _counted(name, here_is):
            sentences.append(f"{words.get(name, name)} {was} there, {here_is} here")
    return sentences


def continued(about: dict[str, Any], windows: int) -> list[str]:
    """What changed within the first windows of a record, because something else continued it."""
    sentences = []
    for (_, before), (first, after) in itertools.pairwise(makers(about)):
        for name in sorted(before.keys() | after.keys()):
            was, then = (str(made.get(name, "unknown")) for made in (before, after))
            if first < windows and name != "cores" and _counted(name, was) != _counted(name, then):
                sentences.append(f"windows from {first} on were made with {name} {then}, those before with {was}")
    return sentences


def _counted(name: str, version: Any) -> Any:
    """A patch release of Python changes no number."""
    return version.split(".")[:2] if name == "python" else version
