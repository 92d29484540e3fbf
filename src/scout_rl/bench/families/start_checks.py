"""Offline validation of a ladder in a batch simulator: every cell restored, settled and judged before any training.

Invalid is a start that is not finite, restores differently twice, is out of bounds, should be a grasp and is none, or
drops its object under the settling action; and a level-0 start that is already a success. An assisted start that is
already a success is allowed (near the goal it teaches holding still), counted and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, States
from scout_rl.ladders.validate import Problem, Report

SETTLING_STEPS = 10
FOLLOWED = 5
"""Random actions for which two restores are compared."""
CHUNK = 64

Judge = Callable[[Any], NDArray[np.bool_]]
"""bool[n] of an observation of n environments."""


def check_starts(
    simulator: BatchSimulator,
    ladder: Mapping[str, NDArray[Any]],
    *,
    inside: Judge,
    is_success: Judge,
    settle: NDArray[np.float64],
    holds: Judge | None = None,
    must_hold: NDArray[np.bool_] | None = None,
    coast: Callable[[Any], Any] | None = None,
    as_starts: Callable[[States], States] | None = None,
    seed: int = 0,
) -> Report:
    """Check every cell of ``ladder`` [contexts, levels, ...].

    ``settle`` is the action that should change nothing. Where ``holds`` is true of a restored start, it has to stay
    true for the settling steps; at cells of ``must_hold`` [contexts, levels] it has to be true to begin with. ``coast``
    settles once more, without any action: then the controls in the state alone hold a grasp. ``as_starts`` recomputes
    what a state derives from its positions: in a start it has to agree already.
    """
    n_contexts, n_levels = next(iter(ladder.values())).shape[:2]
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}
    needed = np.zeros((n_contexts, n_levels), dtype=bool) if must_hold is None else must_hold
    generator = np.random.default_rng(seed)
    problems: list[tuple[int, str]] = []
    assisted = 0
    for begin in range(0, n_contexts * n_levels, CHUNK):
        cells = np.arange(begin, min(begin + CHUNK, n_contexts * n_levels))
        starts = {name: array[cells] for name, array in flat.items()}
        finite = _finite(starts)
        problems += [(int(c), "not finite") for c in cells[~finite]]
        cells, starts = cells[finite], {name: array[finite] for name, array in starts.items()}
        if not len(cells):
            continue
        actions = generator.uniform(-1, 1, (FOLLOWED, len(cells), len(settle)))
        if as_starts is not None:
            problems += [
                (int(c), "derived arrays that disagree with qpos") for c in cells[_differ(starts, as_starts(starts))]
            ]
        problems += _restore_problems(simulator, starts, actions, cells)
        state = simulator.reset_to(starts)
        seen = simulator.observe(state)
        already = is_success(seen)
        assisted += int((already & (cells % n_levels > 0)).sum())
        problems += [(int(c), "out of bounds") for c in cells[~inside(seen)]]
        target = already & (cells % n_levels == 0)
        problems += [(int(c), "a level-0 start that is already a success") for c in cells[target]]
        if holds is not None:
            held = holds(seen)
            missing = needed.reshape(-1)[cells] & ~held
            problems += [(int(c), "does not hold at the start") for c in cells[missing]]
            closed = np.tile(settle, (len(cells), 1))
            problems += _dropped(state, lambda s: simulator.step(s, closed)[1].observation, holds, held, cells)  # noqa: B023
            if coast is not None:
                problems += _dropped(simulator.reset_to(starts), coast, holds, held, cells)
    found = tuple(Problem(c // n_levels, c % n_levels, 0, reason) for c, reason in sorted(problems))
    n_assisted = n_contexts * (n_levels - 1)
    warnings = (f"{assisted} of {n_assisted} assisted starts are already a success",) if assisted else ()
    return Report(n_contexts * n_levels, found, warnings)


def _finite(starts: States) -> NDArray[np.bool_]:
    """bool[n]: no number of the state is infinite or undefined."""
    floats = [array for array in starts.values() if array.dtype.kind == "f"]
    return np.asarray(np.all([np.isfinite(a).reshape(len(a), -1).all(axis=1) for a in floats], axis=0))


def _differ(a: States, b: States) -> NDArray[np.bool_]:
    """bool[n]: whether any array of the states differs."""
    unequal = [(a[name] != b[name]).reshape(len(a[name]), -1).any(axis=1) for name in a]
    return np.asarray(np.any(unequal, axis=0))


def _restore_problems(
    simulator: BatchSimulator, starts: States, actions: NDArray[np.float64], cells: NDArray[np.int64]
) -> Iterator[tuple[int, str]]:
    """Restored once in order and once in reverse, in environments that did something else in between."""
    first = _follow(simulator, starts, actions)
    again = _follow(simulator, {name: array[::-1] for name, array in starts.items()}, actions[:, ::-1])
    equal = np.ones(len(cells), dtype=bool)
    for one, other in zip(first, again, strict=True):
        equal &= (one == other[::-1]).reshape(len(cells), -1).all(axis=1)
        if not np.isfinite(one).all():
            bad = ~np.isfinite(one).reshape(len(cells), -1).all(axis=1)
            yield from ((int(c), f"not finite within {FOLLOWED} steps") for c in cells[bad])
            return
    yield from ((int(c), "two restores differ") for c in cells[~equal])


def _follow(simulator: BatchSimulator, starts: States, actions: NDArray[np.float64]) -> list[NDArray[Any]]:
    state = simulator.reset_to(starts)
    seen = _leaves(simulator.observe(state))
    for action in actions:
        state, transition = simulator.step(state, action)
        seen += _leaves(transition.observation)
    return seen


def _leaves(observation: Any) -> list[NDArray[Any]]:
    parts = observation.values() if isinstance(observation, Mapping) else [observation]
    return [np.asarray(part) for part in parts]


def _dropped(
    state: Any, advance: Callable[[Any], Any], holds: Judge, held: NDArray[np.bool_], cells: NDArray[np.int64]
) -> Iterator[tuple[int, str]]:
    """The starts that held and cease to, as the state is advanced."""
    for number in range(1, SETTLING_STEPS + 1):
        now = holds(advance(state))
        reason = f"does not hold: dropped after {number} settling steps"
        yield from ((int(c), reason) for c in cells[held & ~now])
        held = held & now
