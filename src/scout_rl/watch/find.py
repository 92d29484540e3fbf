"""Find the runs and campaigns at or below some folders. Links below them are not followed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl.files.archive import has_entry
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records.tables import CONFIG, WINDOWS
from scout_rl.watch.disk import Signature, read_small, reading_foreign, signature
from scout_rl.watch.follow import RUN
from scout_rl.watch.rows import Place

MOST_FOLDERS = 20_000
"""Folders that one search looks into."""
CAMPAIGN, FAILURES = ".campaign", ".failures.json"
CHANCES = 3
"""Failures after which a campaign leaves a run alone."""


class Found(NamedTuple):
    """What a search found."""

    places: dict[str, Place]
    """Runs and compact records by id, in order."""
    campaigns: dict[str, Place]
    troubles: list[str]


class Search:
    """Searches the same roots again and again; it remembers what it had to open."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = list(roots)
        self._known: dict[Path, tuple[Signature | None, bool]] = {}

    def find(self) -> Found:
        """Everything at or below the roots."""
        found, left = Found({}, {}, []), MOST_FOLDERS
        for root in self.roots:
            top = Path(os.path.realpath(root))
            if not os.path.exists(top):  # unlike Path.exists it never raises
                found.troubles.append(f"{root} does not exist")
                continue
            here = Found({}, {}, [])
            if top.is_file():
                if self._is_record(top):
                    self._add(here.places, top, root.name)
            else:
                left = self._walk(here, root, top, left)
            if not here.places and left > 0:
                found.troubles.append(f"{root} holds no run yet")
            for places, below in ((found.places, here.places), (found.campaigns, here.campaigns)):
                for key, place in below.items():
                    places.setdefault(key, place)
        if left <= 0:
            found.troubles.append(f"only the first {MOST_FOLDERS:,} folders were searched: name the runs' own folder")
        return found

    def _walk(self, found: Found, root: Path, top: Path, left: int) -> int:
        for folder, names, files in os.walk(top):
            left -= 1
            if left <= 0:
                break
            here = Path(folder)
            if CAMPAIGN in names and not (here / CAMPAIGN).is_symlink():
                self._add(found.campaigns, here, _name(root, top, here))
            if self._is_run(here, files):
                names.clear()  # nothing inside a run folder is a run
                self._add(found.places, here, _name(root, top, here))
                continue
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                if name.endswith(".npz") and self._is_record(here / name):
                    self._add(found.places, here / name, _name(root, top, here / name))
        return left

    @staticmethod
    def _add(places: dict[str, Place], path: Path, name: str) -> None:
        key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        places.setdefault(key, Place(key, name, path))

    def _is_run(self, folder: Path, files: list[str]) -> bool:
        """A run.json, or a config.json that is a curriculum's: other programs write one too."""
        if RUN in files or (CONFIG in files and WINDOWS in files):
            return True
        return CONFIG in files and self._remembered(folder / CONFIG, _is_curriculum)

    def _is_record(self, path: Path) -> bool:
        return self._remembered(path, lambda path: has_entry(read_small(path), "about.json"))

    def _remembered(self, path: Path, test: Any) -> bool:
        now = signature(path)
        if path not in self._known or self._known[path][0] != now:
            try:
                with reading_foreign(path):
                    verdict = bool(test(path))
            except Refusal:
                verdict = False
            self._known[path] = now, verdict
        return self._known[path][1]


def _is_curriculum(path: Path) -> bool:
    config = json.loads(read_small(path))
    return isinstance(config, dict) and "n_contexts" in config and "rule" in config


def _name(root: Path, top: Path, path: Path) -> str:
    below = path.relative_to(top).as_posix()
    return (root.name or top.name) if below == "." else below


def failures(campaign: Path) -> tuple[dict[str, list[str]], list[str]]:
    """The errors of a campaign's runs by SETTING/RULE/SEED, and a sentence for every list that cannot be read."""
    top = campaign / CAMPAIGN
    lists: dict[str, list[str]] = {}
    troubles = []
    for folder, names, files in os.walk(top):
        names.sort()
        for name in sorted(file for file in files if file.endswith(FAILURES)):
            path = Path(folder) / name
            try:
                content = read_small(path)
                with reading_foreign(path):
                    rows = json.loads(content)
                    require_shape(rows, [{"error": str}])
                    errors = [row["error"] for row in rows]
            except Refusal as refusal:
                troubles.append(str(refusal))
                continue
            except FileNotFoundError:  # deleted meanwhile: the run finished
                continue
            lists[path.relative_to(top).as_posix().removesuffix(FAILURES)] = errors
    return lists, troubles
