"""Does a restored environment go on like the uninterrupted episode, below all wrappers?

Wrappers and step counters restart at a restore, as they should. For the comparison the counters are put back.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State, layers
from scout_rl.codecs.compare import difference, flatten
from scout_rl.codecs.kinds import is_env
from scout_rl.files.archive import Array

Numbers = dict[tuple[int, str], int]
"""Whole-number attributes by their holder's index in `holders`, and name."""


class Stretch:
    """What the innermost environment did from one state until its reset."""

    def __init__(self, base: Env, observation: Any, just_reset: bool) -> None:
        self.observation = flatten(observation)
        """Its last observation before."""
        self.just_reset, self.over = just_reset, False
        self.numbers = [whole_numbers(base)]
        """Whole numbers at the state and after every step."""
        self.steps: list[tuple[Any, dict[str, Array]]] = []
        """The action of every step, and its observation, reward and termination."""


@contextmanager
def watching(base: Env, stretches: list[Stretch]) -> Iterator[Callable[[], None]]:
    """Record the actions and results of the innermost environment. The value begins a new stretch."""
    observation, just_reset = None, False
    original_reset, original_step = base.reset, base.step

    def begin() -> None:
        stretches.append(Stretch(base, observation, just_reset))

    @functools.wraps(original_reset)
    def reset(*args: Any, **kwargs: Any) -> Any:
        nonlocal observation, just_reset
        result = original_reset(*args, **kwargs)
        observation, just_reset = copy.deepcopy(result[0]), True
        if stretches:
            stretches[-1].over = True
        return result

    def step(action: Any) -> Any:
        nonlocal observation, just_reset
        action_before = copy.deepcopy(action)
        result = original_step(action)
        observation, just_reset = copy.deepcopy(result[0]), False
        if stretches and not stretches[-1].over:
            stretches[-1].steps.append((action_before, _step_arrays(result)))
            stretches[-1].numbers.append(whole_numbers(base))
        return result

    base.reset, base.step = reset, step
    try:
        yield begin
    finally:
        del base.reset, base.step


def check_original(env: Env, codec: Codec, states: Sequence[State], stretches: Sequence[Stretch]) -> tuple[str, str]:
    """Result and text: with an exact codec, every number is that of the uninterrupted episode."""
    if not getattr(codec, "exact", False):
        return (
            "skipped",
            "this codec computes some values anew, so it may differ from the original: see the last line",
        )
    base, at_reset = env.unwrapped, counters([stretch.numbers for stretch in stretches])
    for index, (state, stretch) in enumerate(zip(states, stretches, strict=True)):
        codec.set_state(base, state)
        for (place, name), value in at_reset.items():  # put back the step counters that the restore restarted
            holder = holders(base)[place]
            live = getattr(holder, name, None)
            if live == value:
                setattr(holder, name, type(live)(stretch.numbers[0][place, name]))
        for number, (action, theirs) in enumerate(stretch.steps, start=1):
            worst = difference(_step_arrays(base.step(action)), theirs)
            if worst is not None:
                return "fail", f"state {index} goes on otherwise than the uninterrupted episode: step {number}/{worst}"
    steps = sum(len(stretch.steps) for stretch in stretches)
    return "pass", f"goes on as the uninterrupted episode did, over {steps} steps"


def holders(env: Env) -> list[Env]:
    """The wrappers, the environment itself, and the environments that it holds."""
    return [*layers(env), *(value for value in vars(env.unwrapped).values() if is_env(value))]


def whole_numbers(env: Env) -> Numbers:
    """The whole-number attributes of an environment, its wrappers and the environments that it holds."""
    return {
        (place, name): int(value)
        for place, holder in enumerate(holders(env))
        for name, value in vars(holder).items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
    }


def counters(episodes: Sequence[Sequence[Numbers]]) -> Numbers:
    """Numbers that rise by one with every step of all episodes, with their first value in the first."""
    steady = dict(episodes[0][0])
    for rows in episodes:
        for before, after in pairwise(rows):
            steady = {k: v for k, v in steady.items() if k in before and after.get(k) == before[k] + 1}
    return steady


def _step_arrays(result: Any) -> dict[str, Array]:
    """The result of a step as arrays; truncation is left out, because time limits restart."""
    observation, reward, terminated, _, _ = result
    arrays = {name: array.copy() for name, array in flatten(observation).items()}
    return {**arrays, "reward": np.asarray(reward), "terminated": np.asarray(terminated)}
