"""Which evaluation group each training context belongs to; records hold none, the settings table says it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.settings import SETTINGS

Labels = tuple[tuple[str, ...], NDArray[np.int64]]
"""Group names, and an index into them for every training context."""


def training_groups(setting: str, n_contexts: int, bank_sha256: str) -> Labels | None:
    """A bank lists its training contexts group by group in the setting's shares; None for a bank that is not pinned."""
    chosen = SETTINGS.get(setting)
    if chosen is None or chosen.n_train != n_contexts or pinned_hashes().get(setting) != bank_sha256:
        return None
    counts = [round(group.share * n_contexts) for group in chosen.groups[:-1]]
    counts.append(n_contexts - sum(counts))
    return tuple(group.name for group in chosen.groups), np.repeat(np.arange(len(counts)), counts)


def read_labels(path: Path, n_contexts: int) -> Labels:
    """Labels of one's own: a JSON list with a name (or number) for every context."""
    try:
        given = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no JSON list of group names: {error}") from error
    if not isinstance(given, list) or len(given) != n_contexts:
        found = f"a list of {len(given)}" if isinstance(given, list) else type(given).__name__
        raise ValueError(f"{path} must hold a list of {n_contexts} group names, one a context, and holds {found}")
    names = tuple(dict.fromkeys(str(name) for name in given))
    return names, np.array([names.index(str(name)) for name in given], np.int64)


def n_train(setting: str) -> int:
    """Training contexts of a setting; 0 for one that is not in the table."""
    return SETTINGS[setting].n_train if setting in SETTINGS else 0


def oracle_groups(setting: str, n_contexts: int) -> NDArray[np.int64] | None:
    """What an oracle rule saw of a setting's training contexts; None for a setting that is not in the table."""
    if n_train(setting) != n_contexts:
        return None
    if not SETTINGS[setting].oracle_sees_groups:
        return np.zeros(n_contexts, np.int64)
    labels = training_groups(setting, n_contexts, pinned_hashes().get(setting, ""))
    return None if labels is None else labels[1]
