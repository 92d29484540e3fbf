"""Where a campaign's runs are kept: a folder that every worker sees, or any storage that fsspec has a URL for.

In a folder (local, or shared between machines) runs are trained in place. With a URL (``s3://…``) a worker trains in a
folder of its own machine and copies: down when it starts, up after every checkpoint.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from scout_rl.bench.run.sources import tidy
from scout_rl.files.atomic import write_bytes
from scout_rl.files.cache import cache_folder
from scout_rl.files.lock import LOCK
from scout_rl.files.refusal import Refusal

MANIFEST = "manifest.json"
WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "memory"}
"""Protocols by which a file is either there with all its bytes or not at all; elsewhere it is renamed into place."""


class Store(Protocol):
    """Small files by name, and run folders."""

    url: str
    """What the user gave; `open_store` of it is this store again."""
    slow: bool
    """Whether looking often would cost something."""

    def read(self, name: str, last: int | None = None) -> bytes | None:
        """The bytes of a file, or its ``last`` ones; None where there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a small file at once."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""

    def checkpoints(self, name: str) -> list[int]:
        """The windows of which a run has a checkpoint."""

    def home(self, name: str) -> Path:
        """The folder of this machine in which a worker trains the run."""

    def pull(self, name: str) -> None:
        """Bring what is kept of a run into its home."""

    def push(self, name: str) -> None:
        """Keep what a run's home holds; died in the middle, what was kept before still works."""

    def reading(self, name: str) -> Any:
        """A context with a local folder that holds the run's records."""


def open_store(url: str) -> Store:
    """The store of a path or a URL."""
    return UrlStore(tidy(url)) if "://" in url else FolderStore(tidy(url))


class FolderStore:
    """A folder; shared by all machines that take part."""

    slow = False

    def __init__(self, url: str) -> None:
        self.url, self.root = url, Path(url)

    def read(self, name: str, last: int | None = None) -> bytes | None:
        """Of a file below the folder."""
        try:
            with (self.root / name).open("rb") as file:
                if last is not None:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(0, size - last))
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """Whole or not at all."""
        write_bytes(self.root / name, data)

    def delete(self, name: str) -> None:
        """One file."""
        (self.root / name).unlink(missing_ok=True)

    def checkpoints(self, name: str) -> list[int]:
        """Those with a manifest."""
        return _saved(path.as_posix() for path in (self.root / name / "checkpoints").glob(f"*/{MANIFEST}"))

    def home(self, name: str) -> Path:
        """Runs are trained where they are kept."""
        return self.root / name

    def pull(self, name: str) -> None:
        """Nothing to do."""

    def push(self, name: str) -> None:
        """Nothing to do."""

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """The run's own folder."""
        yield self.root / name


def checkpoint_files(home: Path) -> list[str]:
    """Every file below a run's checkpoints, in an order in which a manifest comes after all that it names."""
    folder = home / "checkpoints"
    found = [path.relative_to(home).as_posix() for path in folder.rglob("*") if path.is_file()]
    whole = [file for file in found if ".partial" not in file]
    return sorted(whole, key=lambda file: (file.split("/")[1].isdigit(), file.split("/")[1], file.endswith(MANIFEST)))


def _saved(files: Iterable[str]) -> list[int]:
    """The windows of the checkpoints that manifests among the files are of."""
    parts = [file.split("/") for file in files]
    return sorted(int(part[-2]) for part in parts if part[-1] == MANIFEST and part[-2].isdigit())


class UrlStore:
    """Object storage, or anything else that fsspec opens."""

    slow = True

    def __init__(self, url: str) -> None:
        try:
            fsspec: Any = importlib.import_module("fsspec")
        except ModuleNotFoundError as error:
            raise Refusal(f"{url} is a URL, which needs fsspec: pip install 'scout-rl[ray]'") from error
        self.url = url
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise Refusal(f"fsspec cannot open {url}: {error}") from error
        protocol = self._fs.protocol
        self._whole = bool(WHOLE & {protocol} if isinstance(protocol, str) else WHOLE & set(protocol))
        self._work = cache_folder() / "campaign" / hashlib.sha256(url.encode()).hexdigest()[:16]

    def read(self, name: str, last: int | None = None) -> bytes | None:
        """Of an object."""
        try:
            data = self._fs.cat_file(self._at(name), start=None if last is None else -last)
        except FileNotFoundError:
            return None
        return bytes(data)

    def write(self, name: str, data: bytes) -> None:
        """One object, whole or not at all."""
        self._put(self._at(name), data)

    def delete(self, name: str) -> None:
        """One object."""
        if self._fs.exists(self._at(name)):
            self._fs.rm_file(self._at(name))

    def checkpoints(self, name: str) -> list[int]:
        """Those with a manifest."""
        return _saved(self._files(self._at(f"{name}/checkpoints")))

    def home(self, name: str) -> Path:
        """A folder of this machine's cache."""
        return self._work / name

    def pull(self, name: str) -> None:
        """Copy every file down, in place of whatever an earlier attempt left on this machine."""
        shutil.rmtree(self.home(name), ignore_errors=True)
        self._copy_down(name, self.home(name))

    def push(self, name: str) -> None:
        """Records, then what checkpoints share, then the newest checkpoint, its manifest last; then drop the old.

        Records that are ahead of the newest whole checkpoint are cut back when the run is continued, so a death
        between any two of these copies leaves a state to continue from.
        """
        home, at = self.home(name), self._at(name)
        there = {path.removeprefix(f"{at}/") for path in self._files(at)}
        for path in sorted(path for path in home.iterdir() if path.is_file() and path.name != LOCK):
            self._put(f"{at}/{path.name}", path.read_bytes())
        for file in (files := checkpoint_files(home)):
            if file not in there:  # they never change
                self._put(f"{at}/{file}", (home / file).read_bytes())
        newest = max(file for file in files if file.endswith(MANIFEST))
        ahead = any(file > newest for file in there if file.endswith(MANIFEST))  # of another attempt: not ours to tidy
        stale = sorted(file for file in there if file.startswith("checkpoints/") and file not in files)
        for file in [] if ahead else sorted(stale, key=lambda file: not file.endswith(MANIFEST)):
            self.delete(f"{name}/{file}")

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """A copy of the records, gone afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            self._copy_down(name, Path(folder), checkpoints=False)
            yield Path(folder)

    def _copy_down(self, name: str, home: Path, *, checkpoints: bool = True) -> None:
        at = self._at(name)
        for path in self._files(at):
            below = path.removeprefix(f"{at}/")
            if checkpoints or not below.startswith("checkpoints/"):
                (home / below).parent.mkdir(parents=True, exist_ok=True)
                (home / below).write_bytes(self._fs.cat_file(path))

    def _put(self, to: str, data: bytes) -> None:
        self._fs.makedirs(to.rsplit("/", 1)[0], exist_ok=True)
        at = to if self._whole else f"{to}.partial"
        self._fs.pipe_file(at, data)
        if at != to:
            self._fs.mv(at, to)

    def _files(self, at: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return [str(path) for path in self._fs.find(at)]
        except FileNotFoundError:
            return []

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"
