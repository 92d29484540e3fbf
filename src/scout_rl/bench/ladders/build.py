"""Ladders of any source: built and validated once, kept on disk, then read in less than a second.

A ladder is kept under a hash of everything that it depends on: the contexts, the source, the number of levels, the
library versions, the machine type and the code that builds it. A killed process leaves no half-written file. A damaged
file is reported, and the ladder is built again.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import family
from scout_rl.bench.families.family import Family, States
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.archive import content_hash, read_archive, write_archive
from scout_rl.files.cache import cache_folder, code_hash, installed_versions
from scout_rl.files.refusal import Refusal

LIBRARIES = ("mujoco", "gymnasium-robotics", "metaworld", "minigrid", "numpy")
CODE = ("bench/ladders/*.py", "bench/families/*.py", "bench/settings/bank.py", "ladders/*.py", "codecs/*.py")
"""The code that builds ladders, besides the family's. After a change of it, ladders are built again."""

Say = Callable[[str], None]
Built = tuple[States, dict[str, Any]]
"""A ladder [contexts, levels, ...] and JSON values about it."""


class Wanted(NamedTuple):
    """A ladder to build."""

    setting: Setting
    contexts: Mapping[str, NDArray[Any]]
    n_levels: int
    runs: Sequence[Any] = ()
    """For a source from runs: `policy.TrainedRun` in the order in which they play."""

    @property
    def family(self) -> Family:
        """The setting's family."""
        return family(self.setting.family)


def build_ladder(wanted: Wanted, source: str, say: Say = print) -> Built:
    """Build the ladder without the cache. It is validated only if it comes from runs."""
    built: Built = _file_of(source).build(wanted, say)
    return built


def load_ladder(wanted: Wanted, source: str = "manual", say: Say = print) -> Built:
    """What ``build_ladder`` returns, from the cache if it is kept there.

    A ladder with an invalid cell is not kept; a ``ValueError`` lists the problems.
    """
    name = f"{wanted.setting.key}-{source}-{wanted.n_levels}-{_key(wanted, source)}.npz"
    path = cache_folder() / "ladders" / name
    if path.exists():
        try:
            ladder, meta, _ = read_archive(path)
            return ladder, meta["about"]
        except Refusal as error:
            say(f"{error} The ladder is built again.")
    ladder, about = build_ladder(wanted, source, say)
    if not SOURCES[source].from_runs:
        report = wanted.family.check_ladder(wanted.contexts, ladder, by_hand=SOURCES[source].by_hand)
        if not report.ok:
            raise Refusal(f"the {source} ladder is invalid: {report}")
        for warning in report.warnings:
            say(f"{source} ladder: {warning}")
    meta = {"kind": "batch ladder", "setting": wanted.setting.key, "source": source, "about": about}
    write_archive(path, ladder, meta)
    return ladder, about


def _file_of(source: str) -> Any:
    return importlib.import_module(f"scout_rl.bench.ladders.{source}")


def _key(wanted: Wanted, source: str) -> str:
    setting = wanted.setting
    meta = {
        "family": setting.family,
        "task": setting.task,
        "n_levels": wanted.n_levels,
        "source": source,
        "machine": platform.machine(),
        "libraries": installed_versions(LIBRARIES),
        "code": code_hash(f"bench/families/{setting.family}/*.py", *CODE),
        "made_of": _file_of(source).made_of(wanted),
    }
    arrays = {name: np.asarray(array) for name, array in wanted.contexts.items()}
    return hashlib.sha256((content_hash(arrays, {}) + json.dumps(meta, sort_keys=True)).encode()).hexdigest()[:24]
