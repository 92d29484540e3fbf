"""Fill the groups of a bank from a sampler of contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Group, Setting
from scout_rl.files.refusal import Refusal

MOST_CANDIDATES = 1_000_000

Draw = Callable[[np.random.Generator], States]
Features = Callable[[Mapping[str, NDArray[Any]]], dict[str, float]]


def fill_groups(setting: Setting, draw: Draw, features: Features) -> ContextBank:
    """Draw contexts until every group of the train part and of the held-out part is full.

    A context belongs to the first group whose bounds its features meet. It fills the train part before the held-out
    part. One that meets no bounds is dropped.
    """
    generator = np.random.default_rng(setting.bank_seed)
    drawn = (draw(generator) for _ in range(MOST_CANDIDATES))
    return fill_from(setting, ((context, group_of(setting.groups, features(context))) for context in drawn))


def fill_from(setting: Setting, candidates: Iterable[tuple[States, int]]) -> ContextBank:
    """The same from contexts with their group's index; those of an unknown group are dropped."""
    wanted = {
        (held_out, g): count
        for held_out, n in ((False, setting.n_train), (True, setting.n_held_out))
        for g, count in enumerate(counts(setting.groups, n))
    }
    rows: dict[tuple[bool, int], list[States]] = {slot: [] for slot in wanted}
    for context, group in candidates:
        slot = next((s for s in ((False, group), (True, group)) if s in rows and len(rows[s]) < wanted[s]), None)
        if slot is not None:
            rows[slot].append(context)
        if all(len(rows[s]) == wanted[s] for s in wanted):
            break
    else:
        raise Refusal(f"setting {setting.key!r}: its groups cannot be filled from {MOST_CANDIDATES} contexts.")
    slots = [slot for slot in wanted for _ in rows[slot]]
    contexts = [context for slot in wanted for context in rows[slot]]
    labels = np.array([g for _, g in slots], dtype=np.int64)
    return ContextBank(
        contexts={name: np.stack([c[name] for c in contexts]) for name in contexts[0]},
        is_held_out=np.array([held_out for held_out, _ in slots]),
        oracle_group=labels if setting.oracle_sees_groups else np.zeros_like(labels),
        evaluation_group=labels,
    )


def group_of(groups: tuple[Group, ...], features: Mapping[str, float]) -> int:
    """The first group whose bounds the features meet; -1 if there is none."""
    for index, group in enumerate(groups):
        if all(low <= features[feature] <= high for feature, low, high in group.bounds):
            return index
    return -1


def counts(groups: tuple[Group, ...], n: int) -> list[int]:
    """How many of n contexts each group gets; the last takes the remainder."""
    counts = [round(group.share * n) for group in groups[:-1]]
    return [*counts, n - sum(counts)]
