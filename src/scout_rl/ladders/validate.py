"""Check that every cell of a ladder is a start to train from; report invalid cells and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, State, is_made
from scout_rl.codecs.compare import difference
from scout_rl.codecs.playback import play, play_state, sample_actions
from scout_rl.files.archive import Array
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.success import SUCCESS_KEYS, Success, success_reader

ALMOST_THE_SAME = 0.02
"""Neighbouring levels are warned of when closer than this share of the context's mean distance between neighbours."""


class Problem(NamedTuple):
    """A reason why a state of a cell is invalid."""

    context: int
    level: int
    sample: int
    """Which of the cell's states."""
    reason: str

    def __str__(self) -> str:
        return f"cell ({self.context}, {self.level}), state {self.sample}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """The result of :func:`validate`: problems, and warnings that make no cell invalid."""

    n_cells: int
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def reasons(self) -> dict[tuple[int, int], list[str]]:
        """The reasons of each invalid cell (context, level)."""
        cells = dict.fromkeys((p.context, p.level) for p in self.problems)
        return {cell: [p.reason for p in self.problems if p[:2] == cell] for cell in cells}

    @property
    def invalid_cells(self) -> frozenset[tuple[int, int]]:
        """The cells with a problem."""
        return frozenset((p.context, p.level) for p in self.problems)

    @property
    def invalid_rate(self) -> float:
        """The share of invalid cells."""
        return len(self.invalid_cells) / self.n_cells

    @property
    def ok(self) -> bool:
        """Whether no cell is invalid."""
        return not self.problems

    @property
    def headline(self) -> str:
        """How many cells are invalid."""
        return f"{len(self.invalid_cells)} of {self.n_cells} cells invalid ({self.invalid_rate:.1%})"

    def __str__(self) -> str:
        problems = [f"  {problem}" for problem in self.problems]
        return "\n".join([self.headline, *problems, *(f"  warning: {warning}" for warning in self.warnings)])


Finding = tuple[int, str]
"""The index of an invalid state among those of a check, and the reason."""
Check = Callable[[NDArray[np.int64], Any], Iterable[Finding]]
"""Checks states together: (their places [n, 3] of context, level, sample; the states)."""


def inspect(
    places: NDArray[np.int64], states_at: Callable[[NDArray[np.int64]], Any], rounds: Sequence[Sequence[Check]], n: int
) -> tuple[Problem, ...]:
    """Check states, ``n`` at a time, in rounds; states that are invalid in one round skip the next ones.

    ``states_at(rows)`` returns the states at those rows of ``places`` in the form that the checks take.
    """
    problems = []
    for begin in range(0, len(places), n):
        rows = np.arange(begin, min(begin + n, len(places)))
        for checks in rounds:
            if not len(rows):
                break
            findings = [finding for check in checks for finding in check(places[rows], states_at(rows))]
            for i, reason in findings:
                context, level, sample = map(int, places[rows[i]])
                problems.append(Problem(context, level, sample, reason))
            rows = np.setdiff1d(rows, rows[[i for i, _ in findings]] if findings else [])
    return tuple(sorted(problems, key=lambda problem: problem[:3]))


def where(invalid: NDArray[np.bool_], reason: str) -> Iterator[Finding]:
    """The same reason for every state whose ``invalid`` [n] is true."""
    return ((int(i), reason) for i in np.flatnonzero(invalid))


def validate(
    ladder: Ladder,
    env: Env,
    codec: Codec | None = None,
    *,
    inside: Callable[[Env], bool] | None = None,
    holds: Callable[[Env], bool] | None = None,
    settle: Sequence[Any] = (),
    held_levels: Collection[int] | None = None,
    success: Success | None = None,
    goals: Sequence[Array] | None = None,
    horizon: int = 5,
    seed: int = 0,
) -> Report:
    """Restore every state of the ladder in ``env`` (an environment, or a function that makes one) and check it.

    A state is invalid if it

    - is not finite, or cannot be restored;
    - restores differently twice, over ``horizon`` random actions;
    - is not ``inside(env)``;
    - fails ``holds(env)`` at the start or under the ``settle`` actions, at ``held_levels`` (default: every scaffold);
    - carries another goal than ``goals[context]`` (default: the goal of most of the context's states);
    - is a level-0 start that is already a success.
    """
    is_ours = not is_made(env)
    env = env() if is_ours else env
    env.reset(seed=seed)
    checks = _Checks(env, codec if codec is not None else codec_for(env), horizon, seed)
    held = range(1, ladder.n_levels) if held_levels is None else held_levels
    goal_of = [_usual_goal(checks.codec, levels) for levels in ladder.cells] if goals is None else goals
    states = {
        (context, level, sample): state
        for context, levels in enumerate(ladder.cells)
        for level, samples in enumerate(levels)
        for sample, state in enumerate(samples)
    }
    places, every = np.array(list(states)), list(states.values())

    def broken(place: NDArray[np.int64], state: State) -> Iterator[Finding]:
        return ((0, reason) for reason in checks.broken(state, goal_of[place[0, 0]]))

    def unfit(place: NDArray[np.int64], state: State) -> Iterator[Finding]:
        level = int(place[0, 1])
        reasons = checks.outside(state, inside)
        reasons += checks.dropped(state, holds, settle) if level in held else []
        reasons += checks.already_success(state, success) if level == 0 else []
        return ((0, reason) for reason in reasons)

    # One state at a time, since there is one environment.
    problems = inspect(places, lambda rows: every[rows[0]], [[broken], [unfit]], 1)
    warnings = [w for context, levels in enumerate(ladder.cells) for w in _neighbours(checks.codec, context, levels)]
    if is_ours:
        env.close()
    return Report(ladder.n_contexts * ladder.n_levels, problems, tuple(warnings))


class _Checks:
    def __init__(self, env: Env, codec: Codec, horizon: int, seed: int) -> None:
        self.env, self.codec, self.horizon, self.seed = env, codec, horizon, seed
        self.actions = sample_actions(env, seed, horizon)

    def broken(self, state: State, goal: Array | None) -> Iterator[str]:
        """Reasons that make other checks pointless."""
        not_finite = [name for name, array in state.arrays.items() if not _finite(name, array)]
        if not_finite:
            yield f"not finite: {', '.join(not_finite)}"
            return
        try:
            first = play_state(self.env, self.codec, state, self.actions)
        except ValueError as error:
            yield f"cannot be restored: {error}"
            return
        if not all(np.isfinite(a).all() for a in first.values() if a.dtype.kind == "f"):
            yield f"not finite within {self.horizon} steps"
        play(self.env, self.env.reset(seed=self.seed + 1), self.actions[:2])
        again = difference(first, play_state(self.env, self.codec, state, self.actions))
        if again is not None:
            yield f"two restores differ: step {again}"
        carried = getattr(self.codec, "goal", lambda state: None)(state)
        if goal is not None and carried is not None and not np.array_equal(carried, goal):
            yield "carries the goal of another context"

    def outside(self, state: State, inside: Callable[[Env], bool] | None) -> list[str]:
        self.codec.set_state(self.env, state)
        return [] if inside is None or inside(self.env) else ["out of bounds"]

    def dropped(self, state: State, holds: Callable[[Env], bool] | None, settle: Sequence[Any]) -> list[str]:
        if holds is None:
            return []
        self.codec.set_state(self.env, state)
        if not holds(self.env):
            return ["does not hold at the start"]
        for number, action in enumerate(settle, start=1):
            self.env.step(action)
            if not holds(self.env):
                return [f"does not hold: dropped after {number} settling steps"]
        return []

    def already_success(self, state: State, success: Success | None) -> list[str]:
        """By the restored info, the goal environment's own test, or one step that does nothing."""
        observation, info = self.codec.set_state(self.env, state)
        base = self.env.unwrapped
        own_test = getattr(base, "_is_success", None)
        read = success_reader(success, self.env)
        if callable(success) or any(key in info for key in _keys(success)):
            succeeded = read(observation, 0.0, False, False, info)
        elif own_test is not None and isinstance(observation, dict):
            succeeded = bool(own_test(observation["achieved_goal"], observation["desired_goal"]))
        else:
            still = _do_nothing(self.env.action_space)
            if still is None:
                return []
            observation, reward, terminated, truncated, info = self.env.step(still)
            if not any(key in info for key in _keys(success)):
                return []
            succeeded = read(observation, float(reward), terminated, truncated, info)
        return ["a level-0 start that is already a success"] if succeeded else []


def _keys(success: Success | None) -> tuple[str, ...]:
    return (success,) if isinstance(success, str) else SUCCESS_KEYS


def _do_nothing(space: Any) -> Any | None:
    """The zero action of a continuous space that has one."""
    if type(space).__name__ != "Box" or not space.contains(np.zeros(space.shape, dtype=space.dtype)):
        return None
    return np.zeros(space.shape, dtype=space.dtype)


def _finite(name: str, array: Array) -> bool:
    if array.dtype.kind != "f":
        return True
    # Attributes and models may hold infinite limits on purpose, but never a NaN.
    if name.startswith(("attributes/", "model/")):
        return not bool(np.isnan(array).any())
    return bool(np.isfinite(array).all())


def _usual_goal(codec: Codec, levels: Sequence[Sequence[State]]) -> Array | None:
    """The goal of most states of a context; of equally frequent ones, the lower level's."""
    goal_of: Callable[[State], Array | None] = getattr(codec, "goal", lambda state: None)
    goals = [goal for states in levels for state in states if (goal := goal_of(state)) is not None]
    if not goals:
        return None
    votes = Counter(goal.tobytes() for goal in goals)
    winner = max(votes.values())
    return next(goal for goal in goals if votes[goal.tobytes()] == winner)


def _neighbours(codec: Codec, context: int, levels: Sequence[Sequence[State]]) -> Iterator[str]:
    """A warning for each two neighbouring levels that start in almost the same place."""
    places = [_place(codec, states[0]) for states in levels]
    if any(p is None for p in places) or len({p.shape for p in places if p is not None}) != 1:
        return
    gaps = [float(np.linalg.norm(a - b)) for a, b in pairwise(places) if a is not None and b is not None]
    for level, gap in enumerate(gaps):
        if gap <= ALMOST_THE_SAME * float(np.mean(gaps)):
            yield f"levels {level} and {level + 1} of context {context} are almost the same state"


def _place(codec: Codec, state: State) -> Array | None:
    """Positions in a state: the arrays that the codec names, or all numbers of the attributes."""
    names: Sequence[str] | None = getattr(codec, "place", None)
    if names is None:
        names = sorted(n for n in state.arrays if n.startswith("attributes/") and "_np_random" not in n)
    numbers = [state.arrays[n].ravel().astype(np.float64) for n in names if state.arrays[n].dtype.kind in "biuf"]
    return np.concatenate(numbers) if numbers else None
