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
from scout_rl.codecs.codec import Codec, Env, State, goal_of, is_made
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
    """The result of `validate`: problems, and warnings that make no cell invalid."""

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
    codec = codec if codec is not None else codec_for(env)
    held = range(1, ladder.n_levels) if held_levels is None else held_levels
    actions = sample_actions(env, seed, horizon)

    def unfit(state: State, level: int) -> Iterator[str]:
        codec.set_state(env, state)
        if inside is not None and not inside(env):
            yield "out of bounds"
        if level in held and holds is not None:
            yield from _dropped(env, codec, state, holds, settle)
        if level == 0 and _already_success(env, codec, state, success):
            yield "a level-0 start that is already a success"

    problems: list[Problem] = []
    warnings: list[str] = []
    for context, levels in enumerate(ladder.cells):
        goal = _usual_goal(codec, levels) if goals is None else goals[context]
        for level, states in enumerate(levels):
            for sample, state in enumerate(states):
                reasons = list(_broken(env, codec, state, goal, actions, seed + 1)) or unfit(state, level)
                problems += [Problem(context, level, sample, reason) for reason in reasons]
        warnings += _neighbours(codec, context, levels)
    if is_ours:
        env.close()
    return Report(ladder.n_contexts * ladder.n_levels, tuple(problems), tuple(warnings))


def _broken(
    env: Env, codec: Codec, state: State, goal: Array | None, actions: Sequence[Any], other_seed: int
) -> Iterator[str]:
    """Reasons that make other checks pointless."""
    numbers = {name: array for name, array in state.arrays.items() if array.dtype.kind == "f"}
    not_finite = [name for name, array in numbers.items() if not _finite(name, array)]
    if not_finite:
        yield f"not finite: {', '.join(not_finite)}"
        return
    try:
        first = play_state(env, codec, state, actions)
    except ValueError as error:
        yield f"cannot be restored: {error}"
        return
    if not all(np.isfinite(a).all() for a in first.values() if a.dtype.kind == "f"):
        yield f"not finite within {len(actions)} steps"
    play(env, env.reset(seed=other_seed), actions[:2])
    again = difference(first, play_state(env, codec, state, actions))
    if again is not None:
        yield f"two restores differ: step {again}"
    carried = goal_of(codec, state)
    if goal is not None and carried is not None and not np.array_equal(carried, goal):
        yield "carries the goal of another context"


def _dropped(
    env: Env, codec: Codec, state: State, holds: Callable[[Env], bool], settle: Sequence[Any]
) -> Iterator[str]:
    codec.set_state(env, state)
    if not holds(env):
        yield "does not hold at the start"
        return
    for number, action in enumerate(settle, start=1):
        env.step(action)
        if not holds(env):
            yield f"does not hold: dropped after {number} settling steps"
            return


def _already_success(env: Env, codec: Codec, state: State, success: Success | None) -> bool:
    """By the restored info, the goal environment's own test, or one step that does nothing."""
    observation, info = codec.set_state(env, state)
    own_test, space = getattr(env.unwrapped, "_is_success", None), env.action_space
    read = success_reader(success, env)
    keys = {success} if isinstance(success, str) else set(SUCCESS_KEYS)
    if callable(success) or keys & info.keys():
        return read(observation, 0.0, False, False, info)
    if own_test is not None and isinstance(observation, dict):
        return bool(own_test(observation["achieved_goal"], observation["desired_goal"]))
    still = np.zeros(space.shape, dtype=space.dtype) if type(space).__name__ == "Box" else None
    if still is None or not space.contains(still):
        return False
    observation, reward, terminated, truncated, info = env.step(still)
    return bool(keys & info.keys()) and read(observation, float(reward), terminated, truncated, info)


def _finite(name: str, array: Array) -> bool:
    # Attributes and models may hold infinite limits on purpose, but never a NaN.
    wrong = np.isnan(array) if name.startswith(("attributes/", "model/")) else ~np.isfinite(array)
    return not wrong.any()


def _usual_goal(codec: Codec, levels: Sequence[Sequence[State]]) -> Array | None:
    """The goal of most states of a context; of equally frequent ones, the lower level's."""
    goals = [goal for states in levels for state in states if (goal := goal_of(codec, state)) is not None]
    votes = Counter(goal.tobytes() for goal in goals)
    return max(goals, key=lambda goal: votes[goal.tobytes()], default=None)


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
