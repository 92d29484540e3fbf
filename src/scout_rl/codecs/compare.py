"""Exact comparison of observations, states and playbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from scout_rl.files.archive import Array


class Difference(NamedTuple):
    """The entry in which two values differ most, and by how much (``inf`` for what is no number)."""

    where: str
    size: float

    def __str__(self) -> str:
        return f"{self.where} differs" + ("" if np.isinf(self.size) else f" by {self.size:.2g}")


def flatten(value: Any, name: str = "observation") -> dict[str, Array]:
    """A nested observation as named arrays of their own: ``{"achieved_goal": ..., "desired_goal": ...}``."""
    if isinstance(value, Mapping):
        parts = {k: flatten(v, f"{name}/{k}" if name != "observation" else str(k)) for k, v in value.items()}
        return {k: a for part in parts.values() for k, a in part.items()}
    if isinstance(value, tuple):
        return {k: a for i, v in enumerate(value) for k, a in flatten(v, f"{name}/{i}").items()}
    array = np.array(value)
    return {name: array.astype(str) if array.dtype.hasobject else array}


def difference(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> Difference | None:
    """The largest difference; None if both hold exactly the same arrays (NaN equals NaN)."""
    return max(different_arrays(ours, theirs), key=lambda d: d.size, default=None)


def different_arrays(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> list[Difference]:
    """The largest difference of each array in which the two differ."""
    differences = (_difference(n, ours.get(n), theirs.get(n)) for n in dict.fromkeys([*ours, *theirs]))
    return [d for d in differences if d is not None]


def _difference(name: str, a: Array | None, b: Array | None) -> Difference | None:
    if a is None or b is None or a.shape != b.shape:
        return Difference(name, np.inf)
    numbers = a.dtype.kind in "biufc" and b.dtype.kind in "biufc"
    if np.array_equal(a, b, equal_nan=numbers):
        return None
    if not numbers:
        return Difference(name, np.inf)
    ours, theirs = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):  # equal infinities
        gap = np.abs(ours - theirs)
    gap = np.where((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)), 0.0, gap)
    gap = np.where(np.isnan(gap), np.inf, gap)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
    return Difference(f"{name}[{', '.join(map(str, index))}]" if index else name, float(gap[index]))
