"""The storage of a campaign's runs: a folder that every worker sees, or a URL that fsspec opens.

In a folder (local, or shared between machines) runs are trained in place. With a URL (``s3://…``) a worker trains in a
local folder. It downloads the run when it starts, and uploads it after every checkpoint.
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
from typing import Any

from scout_rl.bench.run.sources import normalised
from scout_rl.files.atomic import write_bytes
from scout_rl.files.cache import cache_folder
from scout_rl.files.extras import naming_extras
from scout_rl.files.lock import LOCK
from scout_rl.files.refusal import Refusal

MANIFEST = "manifest.json"
WHOLE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "memory"}
"""Protocols that write a file atomically; elsewhere it is renamed into place."""


def open_store(url: str) -> Store:
    """The store of a path or a URL."""
    return (UrlStore if "://" in url else Store)(normalised(url))


class Store:
    """Small files by name, and run folders, in a folder that all machines of a campaign share."""

    slow = False
    """Whether frequent reads are expensive."""

    def __init__(self, url: str) -> None:
        self.url, self.root = url, Path(url)
        """The user's path or URL (`open_store` of it opens this store again), and the folder of local runs."""

    def read(self, name: str, last: int | None = None) -> bytes | None:
        """The bytes of a file, or its ``last`` ones; None for a missing file."""
        try:
            with (self.root / name).open("rb") as file:
                if last is not None:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(0, size - last))
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a small file atomically."""
        write_bytes(self.root / name, data)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self.root / name).unlink(missing_ok=True)

    def checkpoints(self, name: str) -> list[int]:
        """The windows of a run's checkpoints: those with a manifest."""
        return _saved(path.as_posix() for path in (self.root / name / "checkpoints").glob(f"*/{MANIFEST}"))

    def local_folder(self, name: str) -> Path:
        """The folder on this machine in which a worker trains the run; below a folder it is trained in place."""
        return self.root / name

    def pull(self, name: str) -> None:
        """Download a run into its local folder; nothing to do in place."""

    def push(self, name: str) -> None:
        """Upload a run's local folder; nothing to do in place."""

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """A local folder that holds the run's records."""
        yield self.root / name


def checkpoint_files(run_folder: Path) -> list[str]:
    """Every file of a run's checkpoints; a manifest comes after the files that it names."""
    checkpoints = run_folder / "checkpoints"
    files = [path.relative_to(run_folder).as_posix() for path in checkpoints.rglob("*") if path.is_file()]
    whole = [file for file in files if ".partial" not in file]
    return sorted(whole, key=lambda file: (file.split("/")[1].isdigit(), file.split("/")[1], file.endswith(MANIFEST)))


def _saved(files: Iterable[str]) -> list[int]:
    """The windows of the manifests among the files."""
    parts = [file.split("/") for file in files]
    return sorted(int(part[-2]) for part in parts if part[-1] == MANIFEST and part[-2].isdigit())


class UrlStore(Store):
    """Object storage, or anything else that fsspec opens."""

    slow = True

    def __init__(self, url: str) -> None:
        with naming_extras(f"the URL {url}"):
            fsspec: Any = importlib.import_module("fsspec")
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise Refusal(f"fsspec cannot open {url}: {error}") from error
        protocol = self._fs.protocol
        self._whole = bool(WHOLE & {protocol} if isinstance(protocol, str) else WHOLE & set(protocol))
        self.url, self.root = url, cache_folder() / "campaign" / hashlib.sha256(url.encode()).hexdigest()[:16]

    def read(self, name: str, last: int | None = None) -> bytes | None:
        """Of an object."""
        try:
            data = self._fs.cat_file(self._at(name), start=None if last is None else -last)
        except FileNotFoundError:
            return None
        return bytes(data)

    def write(self, name: str, data: bytes) -> None:
        """One object, atomically."""
        self._put(self._at(name), data)

    def delete(self, name: str) -> None:
        """One object."""
        if self._fs.exists(self._at(name)):
            self._fs.rm_file(self._at(name))

    def checkpoints(self, name: str) -> list[int]:
        """Those with a manifest."""
        return _saved(self._files(self._at(f"{name}/checkpoints")))

    def pull(self, name: str) -> None:
        """Download every file, in place of what an earlier attempt left on this machine."""
        shutil.rmtree(self.local_folder(name), ignore_errors=True)
        self._copy_down(name, self.local_folder(name))

    def push(self, name: str) -> None:
        """Upload records, shared files, then the newest checkpoint with its manifest last; then delete old checkpoints.

        Continuing a run cuts records back to the newest whole checkpoint. So a run killed between any two of these
        copies can be continued.
        """
        folder, at = self.local_folder(name), self._at(name)
        stored = {path.removeprefix(f"{at}/") for path in self._files(at)}
        for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name != LOCK):
            self._put(f"{at}/{path.name}", path.read_bytes())
        for file in (files := checkpoint_files(folder)):
            if file not in stored:  # they never change
                self._put(f"{at}/{file}", (folder / file).read_bytes())
        newest = max(file for file in files if file.endswith(MANIFEST))
        ahead = any(
            file > newest for file in stored if file.endswith(MANIFEST)
        )  # from another attempt: not ours to delete
        stale = sorted(file for file in stored if file.startswith("checkpoints/") and file not in files)
        for file in [] if ahead else sorted(stale, key=lambda file: not file.endswith(MANIFEST)):
            self.delete(f"{name}/{file}")

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """A temporary copy of the records."""
        with tempfile.TemporaryDirectory() as folder:
            self._copy_down(name, Path(folder), checkpoints=False)
            yield Path(folder)

    def _copy_down(self, name: str, folder: Path, *, checkpoints: bool = True) -> None:
        at = self._at(name)
        for path in self._files(at):
            below = path.removeprefix(f"{at}/")
            if checkpoints or not below.startswith("checkpoints/"):
                (folder / below).parent.mkdir(parents=True, exist_ok=True)
                (folder / below).write_bytes(self._fs.cat_file(path))

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
