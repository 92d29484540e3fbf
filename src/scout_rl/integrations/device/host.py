"""What a device curriculum does on the host: its checks, its records, and its state as plain arrays."""

from __future__ import annotations

import hashlib
import sys
import warnings
from types import FrameType
from typing import Any

import numpy as np

from scout_rl.curriculum import Curriculum, snapshot
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.device.episodes import Episodes
from scout_rl.integrations.device.state import Outcome, State
from scout_rl.rules.cells import Cells
from scout_rl.rules.rule import require

SIZES = ("n_contexts", "n_levels", "window", "environments", "longest", "queue", "log")


def check(episodes: Episodes, done: Any, success: Any, signal: Any) -> None:
    """Refuse outcomes of another shape than one per environment, and a signal that is missing."""
    expected = (episodes.environments,)
    for name, value in {"done": done, "success": success, "signal": signal}.items():
        shape = expected if value is None else tuple(np.shape(value))
        require(shape == expected, f"{name} has shape {shape}, but must be {expected}: one per environment")
    require(
        signal is not None or not episodes.rule.needs_signal,
        f"{episodes.rule.key} needs the learner's signal of every outcome; signal is missing",
    )


def drained(episodes: Episodes, state: State, records: Curriculum) -> int:
    """Report the windows since the last drain (NumPy arrays) to ``records``; return how many are drained in all.

    The host computes the rule's state again from the same outcomes, in 64 bits: events and frontiers in the records are
    those. If more have closed than the log holds, the records stay as they are, a true beginning.
    """
    about = [(c.rule, c.n_contexts, c.n_levels, c.window) for c in (episodes, records)]
    if about[0] != about[1]:
        raise Refusal(f"records is {records!r} with windows of {records.window}, but this curriculum has {about[0]}")
    groups: list[Any] = [getattr(rule_state, "group", None) for rule_state in (state.rule, records.state)]
    require(np.array_equal(*groups), "records has other groups than this curriculum: give both one oracle_group")
    first, closed = int(state.drained), int(state.rule.statistics.window)
    if records.windows != first:
        raise Refusal(
            f"records has {records.windows} windows, and {first} have been drained: restore records and state together"
        )
    if closed - first > episodes.log:
        warn_ended(first, "between two drains", episodes.log, "drain more often")
        return first
    for window in range(first, closed):
        row = window % episodes.log
        outcomes = episodes.outcomes(Outcome(*(None if column is None else column[row] for column in state.log)))
        signal = outcomes.signal if state.log.signal is not None else None
        records.report(Cells(outcomes.context, outcomes.level), outcomes.success, signal)
    return closed


def warn_uncounted(state: State) -> None:
    """Warn where more episodes went uncounted than the state has ``named``."""
    missing = int(state.uncounted) - int(state.named)
    if missing > 0:
        _warn(
            f"{missing} episodes were played but not counted, because windows close more slowly than episodes end: "
            "give a larger window= or queue=, or on torch a smaller close_every="
        )


def warn_ended(window: int, when: str, log: int, advice: str) -> None:
    """Warn that the records end at a window, and how that can be avoided."""
    _warn(
        f"the records end at window {window}: more windows closed {when} than the log of {log} holds; {advice}, or "
        "give a larger log="
    )


def _warn(sentence: str) -> None:
    """Warn at the user's line, through as many of our functions as led here."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("scout_rl."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, UserWarning, stacklevel=level)


def state_dict(episodes: Episodes, state: State) -> dict[str, Any]:
    """The state (NumPy arrays) and what it belongs to."""
    about = _about(episodes)
    arrays = {f"state.{name}": np.array(value) for name, value in snapshot.flatten(state).items()}
    return {
        "schema": snapshot.SCHEMA,
        "kind": "device",
        "hash": snapshot.hash_of(about),
        "about": about,
        "arrays": arrays,
    }


def restored(episodes: Episodes, like: State, stored: dict[str, Any]) -> State:
    """The state of a state dict, with the shapes and types of ``like``."""
    if not isinstance(stored, dict) or stored.get("kind") != "device" or stored.get("schema") != snapshot.SCHEMA:
        raise Refusal("this is no device curriculum's state dict of this version")
    about = _about(episodes)
    snapshot.check_identity(stored.get("about"), about)
    if stored.get("hash") != snapshot.hash_of(about):
        raise Refusal("the state dict's hash does not fit its own description: it was altered")
    state: State = snapshot.unflatten(like, stored.get("arrays", {}), "state")
    return state


def _about(episodes: Episodes) -> dict[str, Any]:
    about: dict[str, Any] = {"rule": {"key": episodes.rule.key, **episodes.rule.constants()}}
    about |= {name: getattr(episodes, name) for name in SIZES}
    if episodes.oracle_group is not None:
        about["oracle_group"] = hashlib.sha256(repr(np.asarray(episodes.oracle_group).tolist()).encode()).hexdigest()
    return about
