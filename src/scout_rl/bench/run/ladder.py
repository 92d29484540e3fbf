"""The ladder of a run. A policy ladder (from other runs' policies) is stored in the run's folder.

    ladder.npz     the starts [contexts, levels, ...]
    ladder.json    each context's source, attempts that succeeded, the bootstrap fraction, and the runs it came from

So continuing a run does not need the other runs: they may have moved, been trained further or been deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl.bench.families.family import States
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.ladders.build import Built, Wanted, load_ladder
from scout_rl.bench.ladders.policy import TrainedRun
from scout_rl.bench.learners.pytree import named
from scout_rl.bench.run import trained
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.archive import content_hash, read_archive, write_archive
from scout_rl.files.atomic import write_bytes
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.sources import Sources

LADDER, ABOUT = "ladder.npz", "ladder.json"


class _SourceRun(NamedTuple):
    """A run that a ladder may come from."""

    flag: str
    path: Path


def run_ladder(
    path: Path, config: RunConfig, setting: Setting, bank: ContextBank, say: Callable[[str], None] = print
) -> States:
    """The ladder [contexts, levels, ...] of the run in the folder ``path``, built on first use."""
    if not SOURCES[config.ladder].from_runs:
        return load_ladder(Wanted(setting, bank.train.contexts, config.levels), config.ladder, say)[0]
    stored = path / LADDER
    if stored.exists():
        try:
            return stored_ladder(path)
        except Refusal as error:
            say(f"{error} The ladder is built again.")
    runs = config.ladder_from, config.ladder_fallback
    ladder, about = ladder_from_runs(config.ladder, *runs, setting, bank, config.levels, say)
    about = {**about, "sha256": content_hash(ladder, {})}
    if (path / ABOUT).exists():
        _require_same(path / ABOUT, about)
    write_archive(stored, ladder, about)
    _write_about(path, about)
    return ladder


def stored_ladder(path: Path) -> States:
    """The policy ladder in a run's folder; refuse a missing or damaged one."""
    if not (path / LADDER).exists():
        raise Refusal(f"{path} has no {LADDER}: only a run with a policy ladder that was started keeps one.")
    ladder, about, _ = read_archive(path / LADDER)
    if not (path / ABOUT).exists():
        _write_about(path, about)
    return ladder


def require_sources(path: Path, config: RunConfig, bank: ContextBank) -> None:
    """Refuse unusable sources before anything is built; skip the check once the ladder is stored."""
    if not (path / LADDER).exists():
        for run in _runs(config.ladder_from, config.ladder_fallback):
            _require_source(run, config.setting, bank.sha256)


def ladder_from_runs(
    source: str,
    first: str,
    fallback: str,
    setting: Setting,
    bank: ContextBank,
    n_levels: int,
    say: Callable[[str], None] = print,
) -> Built:
    """The ladder from the policies of one or two runs, and its description; cached by content."""
    for run in _runs(first, fallback):
        _require_source(run, setting.key, bank.sha256)
    runs = [_trained(run, say) for run in _runs(first, fallback)]
    ladder, about = load_ladder(Wanted(setting, bank.train.contexts, n_levels, runs), source, say)
    say(str(Sources.from_dict(about)))
    return ladder, about


def _trained(run: _SourceRun, say: Callable[[str], None]) -> TrainedRun:
    try:
        source = trained.load(run.path, say=say)
    except Refusal as error:
        raise Refusal(f"{run.flag}: {error}") from error
    rule, windows = source.config.rule, source.config.windows
    if source.window < windows:
        say(f"{run.flag} {run.path} has come to window {source.window} of {windows}: its policy of now is used")
    learned = content_hash(named(source.state), {})
    key = {"identity": source.config.identity, "window": source.window, "rule": rule, "learned": learned}
    trained_run = TrainedRun(source.sample(), rule, key)
    if run.flag == "--from" and trained_run.assisted:
        say(f"--from {run.path} was trained with scaffolds (rule {rule}): all of its contexts count as bootstrapped")
    return trained_run


def _runs(first: str, fallback: str) -> list[_SourceRun]:
    return [_SourceRun(flag, Path(name)) for flag, name in (("--from", first), ("--fallback", fallback)) if name]


def _require_source(run: _SourceRun, setting_key: str, bank_sha256: str) -> None:
    try:
        about = read_run(run.path)
    except Refusal as error:
        raise Refusal(f"{run.flag}: {error}") from error
    theirs = about["config"]["setting"]
    if theirs != setting_key:
        raise Refusal(f"{run.flag} {run.path} is a run of {theirs!r}, and a ladder of {setting_key!r} cannot use it")
    if about["bank_sha256"] != bank_sha256:
        raise Refusal(f"{run.flag} {run.path} was trained on another bank: {about['bank_sha256'][:12]}… there")
    if not any((run.path / "checkpoints").glob("*/manifest.json")):
        raise Refusal(f"{run.flag} {run.path} has no checkpoint: there is no policy to take a ladder from yet")


def _require_same(path: Path, about: Mapping[str, Any]) -> None:
    """Refuse a rebuilt ladder that is not the one the run began with."""
    stored = json.loads(path.read_text())
    if stored["sha256"] != about["sha256"]:
        raise Refusal(
            f"the run began with ladder {stored['sha256'][:12]}, and its sources now give {about['sha256'][:12]}: "
            f"restore {path.with_name(LADDER)}, or start in another folder"
        )


def _write_about(path: Path, about: Mapping[str, Any]) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(about[name], sort_keys=True)}" for name in sorted(about))
    write_bytes(path / ABOUT, ("{" + ",\n ".join(lines) + "}\n").encode())
