"""ContextBank: the contexts of a setting, their split, their two labels, and a hash of all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.archive import pack, unpack
from scout_rl.files.atomic import write_bytes
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal

_CONTEXT = "context/"
_FIELDS = ("is_held_out", "oracle_group", "evaluation_group")


@dataclass(frozen=True)
class BankPart:
    """One side of the split: n contexts as named arrays [n, ...] and their labels [n]."""

    contexts: Mapping[str, NDArray[Any]]
    oracle_group: NDArray[np.int64]
    """For oracle rules; metrics never read it."""
    evaluation_group: NDArray[np.int64]
    """For metrics; rules never see it."""

    def __len__(self) -> int:
        return len(self.oracle_group)


@dataclass(frozen=True, eq=False)
class ContextBank:
    """The finite set of contexts of a setting; read-only arrays with one row per context."""

    contexts: Mapping[str, NDArray[Any]]
    """Named arrays [contexts, ...]."""
    is_held_out: NDArray[np.bool_]
    """bool[contexts]: never trained on."""
    oracle_group: NDArray[np.int64]
    evaluation_group: NDArray[np.int64]

    def __post_init__(self) -> None:
        frozen = {name: _frozen(array) for name, array in self.contexts.items()}
        object.__setattr__(self, "contexts", MappingProxyType(frozen))
        object.__setattr__(self, "is_held_out", _frozen(np.asarray(self.is_held_out, dtype=np.bool_)))
        for field in ("oracle_group", "evaluation_group"):
            object.__setattr__(self, field, _frozen(np.asarray(getattr(self, field), dtype=np.int64)))
        self._check()

    def _check(self) -> None:
        n = len(self.is_held_out)
        if not self.contexts:
            raise Refusal("a bank needs at least one named array of contexts")
        for name, array in [*self.contexts.items(), *((f, getattr(self, f)) for f in _FIELDS)]:
            if array.dtype.hasobject:
                raise Refusal(f"bank array {name!r} holds Python objects; only plain arrays can be saved")
            if array.ndim == 0 or len(array) != n:
                raise Refusal(f"bank array {name!r} has shape {array.shape}, but the split has {n} contexts")
        if not 0 < int(self.is_held_out.sum()) < n:
            raise Refusal(f"a bank needs train and held-out contexts, this one holds out {n} of {n} or none")
        rows = [b"".join(a[i].tobytes() for a in self.contexts.values()) for i in range(n)]
        shared = {r for r, h in zip(rows, self.is_held_out, strict=True) if h} & {
            r for r, h in zip(rows, self.is_held_out, strict=True) if not h
        }
        if shared:
            first = next(i for i, r in enumerate(rows) if r in shared)
            raise Refusal(f"context {first} is in the train and in the held-out part of the bank")

    def __len__(self) -> int:
        return len(self.is_held_out)

    @property
    def train(self) -> BankPart:
        """The contexts that rules choose from and learners train on."""
        return self._part(~self.is_held_out)

    @property
    def held_out(self) -> BankPart:
        """The contexts of evaluations, at level 0 only."""
        return self._part(self.is_held_out)

    def _part(self, rows: NDArray[np.bool_]) -> BankPart:
        contexts = MappingProxyType({name: _frozen(a[rows]) for name, a in self.contexts.items()})
        return BankPart(contexts, self.oracle_group[rows], self.evaluation_group[rows])

    def labels(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """The groups that a run records: the name of each context's group, and the labels that oracle rules see."""
        named = {
            side: [names[i] for i in part.evaluation_group.tolist()]
            for side, part in (("train", self.train), ("held_out", self.held_out))
        }
        return {**named, "oracle": self.train.oracle_group.tolist()}

    @property
    def sha256(self) -> str:
        """Hash of all names, types, shapes and values; the same on every platform."""
        digest = hashlib.sha256()
        for name, array in sorted(self._arrays().items()):
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
            digest.update(np.ascontiguousarray(little).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {_CONTEXT + name: a for name, a in self.contexts.items()} | {f: getattr(self, f) for f in _FIELDS}

    def save(self, path: str | Path) -> None:
        """Write the arrays and their hash as one npz file (no pickle), which replaces an old one."""
        write_bytes(path, pack({"sha256": np.array(self.sha256), **self._arrays()}))

    @classmethod
    def load(cls, path: str | Path, sha256: str | None = None) -> ContextBank:
        """Read what ``save`` wrote; refuse content whose hash is not that of the file or of the caller."""
        content = Path(path).read_bytes()
        with reading(path, "is not a saved bank"):
            arrays, _ = unpack(content)
            written = str(arrays.pop("sha256"))
            contexts = {n.removeprefix(_CONTEXT): a for n, a in arrays.items() if n.startswith(_CONTEXT)}
            bank = cls(contexts, *(arrays[f] for f in _FIELDS))
        require_hash(bank, written, str(path))
        if sha256 is not None:
            require_hash(bank, sha256, str(path))
        return bank


def require_hash(bank: ContextBank, sha256: str, source: str) -> None:
    """Refuse a bank whose hash is not the expected one."""
    if bank.sha256 != sha256:
        raise Refusal(
            f"the bank from {source} has content hash {bank.sha256[:12]}…, expected {sha256[:12]}…; "
            "it is not the bank that the results refer to"
        )


def pinned_hashes() -> dict[str, str]:
    """The committed SHA-256 of every setting's bank, by the setting's key."""
    text = resources.files("scout_rl.bench.settings").joinpath("bank_hashes.json").read_text(encoding="utf-8")
    hashes: dict[str, str] = json.loads(text)
    return hashes


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy
