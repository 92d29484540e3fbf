"""Check what a caller reports before anything changes. Errors name the wrong entry."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scout_rl.files.refusal import Refusal
from scout_rl.rules.cells import Cells, Outcomes

if TYPE_CHECKING:
    from scout_rl.curriculum import Curriculum


def whole_number(value: Any, name: str) -> int:
    """Return ``value`` as an int; refuse anything else, also True and False."""
    if isinstance(value, bool | np.bool_):
        raise Refusal(f"{name} is {value!r}, but must be a whole number")
    try:
        return operator.index(value)
    except TypeError:
        raise Refusal(f"{name} is {value!r}, but must be a whole number") from None


def check(curriculum: Curriculum, cells: Cells, success: ArrayLike, signal: ArrayLike | None) -> Outcomes:
    """Return the outcomes as arrays of one length."""
    if not (isinstance(cells, tuple) and len(cells) == 2):
        raise Refusal("cells must be Cells(context, level), as assign returns them")
    context = _index(cells[0], "context", curriculum.n_contexts)
    level = _index(cells[1], "level", curriculum.n_levels)
    if len(level) != len(context):
        raise Refusal(f"there are {len(context)} contexts but {len(level)} levels")
    outcome = _binary(success)
    if outcome.shape != context.shape:
        raise Refusal(f"success has shape {outcome.shape}, but there are {len(context)} cells")
    return Outcomes(context, level, outcome, _signal(curriculum, signal, context.shape), np.ones(len(context), bool))


def evaluation(window: int, outcomes: ArrayLike, group: Sequence[object] | None) -> dict[str, Any]:
    """The row of a held-out evaluation after ``window`` windows: success of all contexts and by group."""
    success = _binary(outcomes, "outcomes")
    if success.ndim != 1 or not len(success):
        raise Refusal(f"outcomes has shape {success.shape}, but must be one flat list with one per held-out context")
    labels = ["all"] * len(success) if group is None else [str(name) for name in group]
    if len(labels) != len(success):
        raise Refusal(f"group names {len(labels)} contexts, but there are {len(success)} outcomes")
    groups = {name: float(success[[label == name for label in labels]].mean()) for name in dict.fromkeys(labels)}
    return {
        "window": window,
        "success": float(success.mean()),
        "groups": groups,
        "outcomes": success.astype(int).tolist(),
    }


def _index(values: ArrayLike, name: str, n: int) -> NDArray[np.int64]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise Refusal(f"{name} is ragged; it must be one flat list of whole numbers") from None
    if array.ndim != 1:
        raise Refusal(f"{name} has shape {array.shape}, but must be one flat list")
    if array.dtype.kind not in "iu":
        if array.size == 0:
            return np.zeros(0, np.int64)
        raise Refusal(f"{name} has type {array.dtype}, but must hold whole numbers")
    index = array.astype(np.int64, copy=False)
    if array.size and index.view(np.uint64).max() >= n:  # a negative number is a large one there
        entry = int(np.argmax((array < 0) | (array >= n)))
        raise Refusal(f"{name}[{entry}] is {array[entry]}, but there are {n}: 0..{n - 1}")
    return index


def _binary(success: ArrayLike, name: str = "success") -> NDArray[np.bool_]:
    try:
        array = np.asarray(success)
    except ValueError:
        raise Refusal(f"{name} is ragged; it must be one flat list of booleans") from None
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf":
        if array.size == 0:
            return np.zeros(array.shape, bool)
        raise Refusal(f"{name} has type {array.dtype}, but must be boolean or 0/1")
    binary: NDArray[np.bool_] = array == 1
    wrong = ~(binary | (array == 0))
    if wrong.any():
        entry = np.unravel_index(int(np.argmax(wrong)), array.shape)
        place = ", ".join(str(i) for i in entry)
        raise Refusal(f"{name}[{place}] is {array[entry]}, but must be boolean or 0/1")
    return binary


def _signal(curriculum: Curriculum, signal: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if signal is None:
        if curriculum.rule.needs_signal and shape != (0,):
            raise Refusal(f"{curriculum.rule.key} needs the learner's signal for every outcome; signal is missing")
        return np.zeros(shape)
    try:
        array = np.asarray(signal, dtype=np.float64)
    except (ValueError, TypeError):
        raise Refusal("signal must be one flat list of numbers") from None
    if array.shape != shape:
        raise Refusal(f"signal has shape {array.shape}, but there are {shape[0]} cells")
    if not np.isfinite(array).all():
        entry = int(np.argmin(np.isfinite(array)))
        raise Refusal(f"signal[{entry}] is {array[entry]}, but must be finite")
    return array


Outcome = tuple[int, int, bool, float]
"""One checked outcome: context, level, success, signal."""


def check_one(curriculum: Curriculum, context: Any, level: Any, success: Any, signal: Any) -> Outcome:
    """Check a single outcome: quickly if it is plain Python and right, else as a list of one."""
    if (
        type(context) is int
        and type(level) is int
        and (type(success) is bool or isinstance(success, np.bool_))
        and 0 <= context < curriculum.n_contexts
        and 0 <= level < curriculum.n_levels
        and signal is None
        and not curriculum.rule.needs_signal
    ):
        return context, level, bool(success), 0.0
    cells = Cells(np.asarray([context]), np.asarray([level]))
    checked = check(curriculum, cells, [success], None if signal is None else [signal])
    return tuple(column[0].item() for column in checked[:4])


def gathered(outcomes: Sequence[Outcome]) -> Outcomes:
    """Single outcomes as the arrays of one window."""
    context, level, success, signal = zip(*outcomes, strict=True) if outcomes else ((), (), (), ())
    return Outcomes(
        np.array(context, np.int64),
        np.array(level, np.int64),
        np.array(success, bool),
        np.array(signal, np.float64),
        np.ones(len(outcomes), bool),
    )


def row(window: int, outcomes: Outcomes) -> dict[str, Any]:
    """The window's row in the records."""
    return {
        "window": window,
        "context": outcomes.context.tolist(),
        "level": outcomes.level.tolist(),
        "success": outcomes.success.astype(int).tolist(),
        **({"signal": outcomes.signal.tolist()} if outcomes.signal.any() else {}),
    }
