"""Check a run's held-out evaluations: each was due, and each mean is the mean of its outcomes.

run.json says which group a held-out context belongs to. Old records lack these labels; their means are only checked
for what holds with any labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import read_table
from scout_rl.records.tables import EVALUATIONS

ROUNDING = 1e-9
"""Means may differ between machines in their last digits."""


def due(windows: int, every: int) -> list[int]:
    """The window counts at which a run is evaluated: 0, each multiple of ``every``, and the last."""
    return sorted({*range(0, windows, every), windows})


def read_evaluations(folder: Path, about: dict[str, Any], closed: int) -> list[dict[str, Any]]:
    """Every evaluation in a run folder with ``closed`` complete windows; refuse a false one."""
    path = folder / EVALUATIONS
    rows = read_table(path)
    with reading(path):
        outcomes = [row["outcomes"] for row in rows]
        if any(len(row) != len(outcomes[0]) or set(row) - {0, 1} for row in outcomes):
            raise Refusal("its outcomes are not one 0 or 1 for every held-out context")
        names = list(rows[0]["groups"]) if rows else []
        if any(list(row["groups"]) != names for row in rows):
            raise Refusal("its evaluations are not of the same groups")
        groups = {name: np.array([row["groups"][name] for row in rows], np.float64) for name in names}
        success = np.array([row["success"] for row in rows], np.float64)
        check_times(about["config"], [row["window"] for row in rows], closed)
        if rows:
            check_means(about, [row["window"] for row in rows], np.array(outcomes, bool), groups, success)
    return rows


def check_times(config: dict[str, Any], at: list[int], closed: int) -> None:
    """Refuse evaluations that were not due, appear twice, or are missing after ``closed`` windows."""
    if "windows" not in config:  # a user's loop evaluates when it likes
        if any(before >= after for before, after in pairwise(at)) or (closed and at[-1:] > [closed]):
            raise Refusal("its evaluations are not in order, or of windows that are not there")
        return
    every = config.get("evaluate_every")
    if not every:  # old configs lack it
        if any(before >= after for before, after in pairwise(at)) or at[:1] not in ([], [0]):
            raise Refusal("its evaluations do not begin before the first window, or are not in order")
        if closed == config["windows"] and at[-1:] != [closed]:
            raise Refusal(f"the evaluation after {closed} windows is missing")
        return
    expected = due(config["windows"], every)
    for i, window in enumerate(at):
        if i >= len(expected) or window != expected[i]:
            wanted = f"the one after {expected[i]} windows" if i < len(expected) else "none"
            raise Refusal(f"its evaluation {i + 1} is of after {window} windows, where {wanted} was due")
    if closed and len(at) < len(expected) and expected[len(at)] <= closed:
        raise Refusal(f"the evaluation after {expected[len(at)]} windows is missing")


def check_means(
    about: dict[str, Any],
    at: Sequence[int],
    outcomes: NDArray[np.bool_],
    groups: Mapping[str, NDArray[np.float64]],
    success: NDArray[np.float64] | None = None,
) -> None:
    """Refuse a mean that differs from the mean of its outcomes [evaluations, held-out contexts]."""
    overall = outcomes.mean(axis=1)
    if success is not None:
        _require_equal("success", at, success, overall)
    if "groups" in about:
        labels = np.array(about["groups"]["held_out"])
        if len(labels) != outcomes.shape[1]:
            raise Refusal(f"it has {outcomes.shape[1]} held-out contexts, and labels for {len(labels)}")
        if set(groups) != set(labels.tolist()):
            raise Refusal(f"its groups are {', '.join(groups)}, and its labels {', '.join(sorted(set(labels)))}")
        for name, values in groups.items():
            _require_equal(f"success of group {name}", at, values, outcomes[:, labels == name].mean(axis=1))
        return
    if len(groups) == 1:
        ((name, values),) = groups.items()
        _require_equal(f"success of group {name}", at, values, overall)
        return
    means = np.stack(list(groups.values()))
    within = (means.min(axis=0) <= overall + ROUNDING) & (overall <= means.max(axis=0) + ROUNDING)
    for i in np.flatnonzero(~(within & (means >= 0).all(axis=0) & (means <= 1).all(axis=0))).tolist():
        stored = ", ".join(f"{name} {values[i]:g}" for name, values in groups.items())
        raise Refusal(f"the evaluation after {at[i]} windows has {stored}, and {overall[i]:g} of all outcomes")


def _require_equal(what: str, at: Sequence[int], stored: NDArray[np.float64], mean: NDArray[np.float64]) -> None:
    for i in np.flatnonzero(~(np.abs(stored - mean) <= ROUNDING)).tolist():  # NaN is unequal too
        raise Refusal(
            f"the evaluation after {at[i]} windows has {what} {stored[i]:g}, "
            f"and the mean of its outcomes is {mean[i]:g}"
        )
