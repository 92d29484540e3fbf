"""Validation of a ladder in a batch simulator, before training: every cell is restored, settled and judged.

A start is invalid when it is not finite, restores differently twice, is out of bounds, carries arrays of another
context, lacks a grasp that it should have, or loses its grasp while settling. A level-0 start that is already a success
is invalid too. An assisted start may be one (near the goal it teaches holding still); these are counted in a warning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import GoalSimulator, States
from scout_rl.ladders.validate import Check, Finding, Report, inspect, where

FOLLOWED = 5
"""Random actions over which two restores are compared."""
CHUNK = 64
"""Cells checked together; it bounds the memory."""

Judge = Callable[[Any], NDArray[np.bool_]]
"""bool[n] of the simulator's state of n environments."""
Places = NDArray[np.int64]


class Grasp(NamedTuple):
    """What a grasp is, which contexts may and must have one, and how it is tested."""

    holds: Judge
    possible: NDArray[np.bool_]
    """[contexts]: a start that holds must keep holding."""
    needed: NDArray[np.bool_]
    """[contexts]: every scaffold must hold."""
    settle: Sequence[Callable[[Any, States], Any]]
    """Steps that should change nothing: (simulator state, starts) to the next simulator state."""
    steps: int
    rest: float = np.inf
    """Metres that the hand of a needed grasp may move in the settling steps."""


def check_starts(
    simulator: GoalSimulator,
    ladder: Mapping[str, NDArray[Any]],
    *,
    inside: Judge,
    as_starts: Callable[[States], States],
    grasp: Grasp | None = None,
    shared: Sequence[str] = (),
    kinds: Sequence[str] | None = None,
    seed: int = 0,
) -> Report:
    """Check every cell of ``ladder`` [contexts, levels, ...].

    ``as_starts`` recomputes derived arrays, which must not change a start. ``shared`` names arrays that are equal at
    all levels of a context. ``kinds`` names each context's kind for the warnings.
    """
    shape = next(iter(ladder.values())).shape[:2]
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}
    assisted: list[int] = []
    generator = np.random.default_rng(seed)

    def restored(places: Places, starts: States) -> Iterator[Finding]:
        """Restore in order and then in reverse, so that each environment has done something else in between."""
        actions = generator.uniform(-1, 1, (FOLLOWED, len(places), simulator.n_actions))
        first = _follow(simulator, starts, actions)
        again = _follow(simulator, {name: array[::-1] for name, array in starts.items()}, actions[:, ::-1])
        lost = np.asarray(~np.isfinite(first).all(axis=(0, 2)))
        yield from where(lost, f"not finite within {FOLLOWED} steps")
        yield from where((first != again[:, ::-1]).any(axis=(0, 2)) & ~lost, "two restores differ")

    def derived(places: Places, starts: States) -> Iterator[Finding]:
        return where(_differ(starts, as_starts(starts)), "derived arrays that disagree with qpos")

    def shared_arrays(places: Places, starts: States) -> Iterator[Finding]:
        for name in shared:
            differs = _differ({name: starts[name]}, {name: ladder[name][places[:, 0], 0]})
            yield from where(differs, f"carries the {name} of another context")

    def judged(places: Places, starts: States) -> Iterator[Finding]:
        state = simulator.reset_to(starts)
        already, level = simulator.is_success(state), places[:, 1]
        assisted.extend(places[already & (level > 0), 0])
        yield from where(~inside(state), "out of bounds")
        yield from where(already & (level == 0), "a level-0 start that is already a success")

    rounds: list[Sequence[Check]] = [[_finite], [derived, restored, judged, shared_arrays]]
    if grasp is not None:
        rounds += _grasp_checks(simulator, grasp)
    places = np.array([(context, level, 0) for context, level in np.ndindex(*shape)])
    problems = inspect(places, lambda rows: {name: array[rows] for name, array in flat.items()}, rounds, CHUNK)
    kind = np.array([""] * shape[0] if kinds is None else kinds)
    warnings = [
        f"{name}{name and ': '}{n} of {(kind == name).sum() * (shape[1] - 1)} assisted starts are already a success"
        for name in dict.fromkeys(kind)
        if (n := (kind[assisted] == name).sum())
    ]
    return Report(len(places), problems, tuple(warnings))


def _finite(places: Places, starts: States) -> Iterator[Finding]:
    floats = [array for array in starts.values() if array.dtype.kind == "f"]
    broken: NDArray[np.bool_] = np.logical_or.reduce([~np.isfinite(a).reshape(len(a), -1).all(axis=1) for a in floats])
    return where(broken, "not finite")


def _differ(a: States, b: States) -> NDArray[np.bool_]:
    """bool[n]: whether any array of the states differs."""
    unequal = [(a[name] != b[name]).reshape(len(a[name]), -1).any(axis=1) for name in a]
    return np.asarray(np.any(unequal, axis=0))


def _follow(simulator: GoalSimulator, starts: States, actions: NDArray[np.float64]) -> NDArray[np.float64]:
    """[steps + 1, n, ...]: all observations."""
    state = simulator.reset_to(starts)
    observations = [simulator.observe(state)]
    for action in actions:
        state, result = simulator.step(state, action)
        observations.append(result.observation)
    return np.array([np.concatenate(list(observation.values()), axis=1) for observation in observations])


def _grasp_checks(simulator: GoalSimulator, grasp: Grasp) -> Iterator[Sequence[Check]]:
    """One round for whether starts hold, and one per way of settling for whether they keep holding."""

    def needed(places: Places) -> NDArray[np.bool_]:
        return grasp.needed[places[:, 0]] & (places[:, 1] > 0)

    def missing(places: Places, starts: States) -> Iterator[Finding]:
        held = grasp.holds(simulator.reset_to(starts))
        return where(needed(places) & ~held, "does not hold at the start")

    def settled(places: Places, starts: States, step: Callable[[Any, States], Any]) -> Iterator[Finding]:
        state = simulator.reset_to(starts)
        hand, held = _hand(simulator, state), grasp.holds(state) & grasp.possible[places[:, 0]]
        for number in range(1, grasp.steps + 1):
            state = step(state, starts)
            now = grasp.holds(state)
            yield from where(held & ~now, f"does not hold: dropped after {number} settling steps")
            away = needed(places) & (np.linalg.norm(_hand(simulator, state) - hand, axis=1) >= grasp.rest)
            drawn = f"does not rest: the hand is drawn away after {number} settling steps"
            yield from where(held & now & away, drawn)
            held &= now & ~away

    yield [missing]
    yield from ([functools.partial(settled, step=step)] for step in grasp.settle)


def _hand(simulator: GoalSimulator, state: Any) -> NDArray[np.float64]:
    return np.asarray(simulator.observe(state)["observation"][:, :3])
