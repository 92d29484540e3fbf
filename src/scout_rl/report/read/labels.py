"""Which evaluation group each training context belongs to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal

Labels = tuple[tuple[str, ...], NDArray[np.int64]]
"""Group names, and an index into them per training context."""


def read_labels(path: Path, n_contexts: int) -> Labels:
    """Read a JSON list with a group name (or number) per context."""
    try:
        names = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is no JSON list of group names: {error}") from error
    if not isinstance(names, list) or len(names) != n_contexts:
        held = f"a list of {len(names)}" if isinstance(names, list) else type(names).__name__
        raise Refusal(f"{path} must hold a list of {n_contexts} group names, one per context, and holds {held}")
    return numbered([str(name) for name in names])


def numbered(labels: Sequence[str]) -> Labels:
    """The names in order of first appearance, and each label's index into them."""
    names = tuple(dict.fromkeys(labels))
    return names, np.array([names.index(label) for label in labels], np.int64)
