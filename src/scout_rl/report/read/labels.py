"""Which evaluation group each training context belongs to: as the record says, or a file of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Labels = tuple[tuple[str, ...], NDArray[np.int64]]
"""Group names, and an index into them for every training context."""


def read_labels(path: Path, n_contexts: int) -> Labels:
    """Labels of one's own: a JSON list with a name (or number) for every context."""
    try:
        names = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no JSON list of group names: {error}") from error
    if not isinstance(names, list) or len(names) != n_contexts:
        held = f"a list of {len(names)}" if isinstance(names, list) else type(names).__name__
        raise ValueError(f"{path} must hold a list of {n_contexts} group names, one a context, and holds {held}")
    return numbered([str(name) for name in names])


def numbered(labels: Sequence[str]) -> Labels:
    """The names in the order in which they come, and each label's place among them."""
    names = tuple(dict.fromkeys(labels))
    return names, np.array([names.index(label) for label in labels], np.int64)
