"""The ladder of a run. One that comes from other runs' policies is kept in the run's own folder.

    ladder.npz     the starts [contexts, levels, ...]
    ladder.json    each context's source, attempts that succeeded, the bootstrap fraction, and the runs it came from

So a run that is continued needs its sources no more: they may have moved, been trained further or been deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

from scout_rl.bench.families import family
from scout_rl.bench.families.family import States
from scout_rl.bench.ladders.attempts import ATTEMPTS, KEY
from scout_rl.bench.ladders.cache import cached_ladder, library_versions, load_ladder
from scout_rl.bench.ladders.policy import Source, build_policy_ladder
from scout_rl.bench.learners.pytree import named
from scout_rl.bench.run import trained
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import read_run
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.archive import content_hash, read_archive, write_archive
from scout_rl.files.atomic import write_bytes
from scout_rl.files.cache import code_hash
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.sources import Sources

LADDER, ABOUT = "ladder.npz", "ladder.json"
POLICY_CODE = (
    "bench/learners/*.py",
    "bench/rollouts/host.py",
    "bench/run/trained.py",
    "bench/ladders/attempts.py",
    "bench/ladders/policy.py",
)
POLICY_LIBRARIES = ("jax", "jaxlib", "equinox")


class _Run(NamedTuple):
    """A run that a ladder may come from."""

    flag: str
    path: Path


def run_ladder(
    path: Path, config: RunConfig, setting: Setting, bank: ContextBank, say: Callable[[str], None] = print
) -> States:
    """The ladder [contexts, levels, ...] of the run in the folder ``path``; built on first use."""
    contexts = bank.train.contexts
    if config.ladder != "policy":
        return load_ladder(setting, contexts, config.levels, config.ladder, say)
    stored = path / LADDER
    if stored.exists():
        try:
            return stored_ladder(path)
        except ValueError as error:
            say(f"{error} The ladder is built again.")
    ladder, about = policy_ladder(config.ladder_from, config.ladder_fallback, setting, bank, config.levels, say)
    about = {**about, "sha256": content_hash(ladder, {})}
    if (path / ABOUT).exists():
        _require_same(path / ABOUT, about)
    write_archive(stored, ladder, about)
    _write_about(path, about)
    return ladder


def stored_ladder(path: Path) -> States:
    """The policy ladder in a run's folder; a missing or damaged one is a ``ValueError``."""
    if not (path / LADDER).exists():
        raise Refusal(f"{path} has no {LADDER}: only a run with a policy ladder that was started keeps one.")
    ladder, about, _ = read_archive(path / LADDER)
    if not (path / ABOUT).exists():
        _write_about(path, about)
    return ladder


def require_sources(path: Path, config: RunConfig, bank: ContextBank) -> None:
    """Refuse, in one sentence, sources that cannot be used; cheap, and not needed once the run has its ladder."""
    if config.ladder == "policy" and not (path / LADDER).exists():
        for run in _runs(config.ladder_from, config.ladder_fallback):
            _require_source(run, config.setting, bank.sha256)


def policy_ladder(
    first: str,
    fallback: str,
    setting: Setting,
    bank: ContextBank,
    n_levels: int,
    say: Callable[[str], None] = print,
) -> tuple[States, dict[str, Any]]:
    """The ladder from the policies of one or two runs, and what is to be known about it; cached by content."""
    sources, hashes = [], []
    for run in _runs(first, fallback):
        _require_source(run, setting.key, bank.sha256)
        try:
            found = trained.load(run.path, say=say)
        except ValueError as error:
            raise Refusal(f"{run.flag}: {error}") from error
        rule, windows = found.config.rule, found.config.windows
        if found.window < windows:
            say(f"{run.flag} {run.path} has come to window {found.window} of {windows}: its policy of now is used")
        assisted = rule != "target"
        if run.flag == "--from" and assisted:
            say(
                f"--from {run.path} was trained with scaffolds (rule {rule}): all of its contexts count as bootstrapped"
            )
        sources.append(Source("scaffold policy" if assisted else "target-start policy", assisted, found.sample()))
        learned = content_hash(named(found.state), {})
        hashes.append({"identity": found.config.identity, "window": found.window, "rule": rule, "learned": learned})
    contexts = bank.train.contexts

    def build() -> tuple[States, dict[str, Any]]:
        say(f"policy ladder: {ATTEMPTS} attempts of {len(sources)} policies in {len(bank.train)} training contexts")
        ladder, chosen = build_policy_ladder(family(setting.family), setting, contexts, n_levels, sources, say)
        return ladder, {**chosen.as_dict(), "runs": hashes}

    made_of = {
        "runs": hashes,
        "attempts": ATTEMPTS,
        "key": KEY,
        "backend": jax.default_backend(),
        "code": code_hash(*POLICY_CODE),
        "libraries": library_versions(POLICY_LIBRARIES),
    }
    ladder, about = cached_ladder(setting, contexts, n_levels, "policy", build, made_of, say)
    say(str(Sources.from_dict(about)))
    return ladder, about


def _runs(first: str, fallback: str) -> list[_Run]:
    given = (("--from", first), ("--fallback", fallback))
    return [_Run(flag, Path(name)) for flag, name in given if name]


def _require_source(run: _Run, setting_key: str, bank_sha256: str) -> None:
    try:
        about = read_run(run.path)
    except ValueError as error:
        raise Refusal(f"{run.flag}: {error}") from error
    theirs = about["config"]["setting"]
    if theirs != setting_key:
        raise Refusal(f"{run.flag} {run.path} is a run of {theirs!r}, and a ladder of {setting_key!r} cannot use it")
    if about["bank_sha256"] != bank_sha256:
        raise Refusal(f"{run.flag} {run.path} was trained on another bank: {about['bank_sha256'][:12]}… there")
    if not any((run.path / "checkpoints").glob("*/manifest.json")):
        raise Refusal(f"{run.flag} {run.path} has no checkpoint: there is no policy to take a ladder from yet")


def _require_same(path: Path, about: Mapping[str, Any]) -> None:
    """A ladder that is built anew in the middle of a run has to be the one that the run began with."""
    there = json.loads(path.read_text())
    if there["sha256"] != about["sha256"]:
        raise Refusal(
            f"the run began with ladder {there['sha256'][:12]}, and its sources now give {about['sha256'][:12]}: "
            f"restore {path.with_name(LADDER)}, or start in another folder"
        )


def _write_about(path: Path, about: Mapping[str, Any]) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(about[name], sort_keys=True)}" for name in sorted(about))
    write_bytes(path / ABOUT, ("{" + ",\n ".join(lines) + "}\n").encode())
