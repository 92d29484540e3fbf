"""Does a restored environment go on like the uninterrupted episode, below all wrappers?

Wrappers and step counters restart at a restore, as they should. For the comparison the counters are put back.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State
from scout_rl.codecs.compare import difference, flatten
from scout_rl.codecs.kinds import is_env
from scout_rl.files.archive import Array

Numbers = dict[tuple[int, str], int]
"""Whole-number attributes by environment (0: the innermost, then those it holds) and name."""


@dataclass
class Stretch:
    """What the innermost environment did from one state until its reset."""

    observation: dict[str, Array]
    """Its last observation before."""
    just_reset: bool
    numbers: list[Numbers]
    """Whole numbers at the state and after every step."""
    actions: list[Any] = field(default_factory=list)
    steps: list[dict[str, Array]] = field(default_factory=list)
    """Observation, reward and termination of every step."""
    over: bool = False


class Watched:
    """The innermost environment's last observation, and the stretch being recorded."""

    def __init__(self, base: Env) -> None:
        self.base = base
        self.observation: Any = None
        self.just_reset = False
        self.stretch: Stretch | None = None

    def begin(self) -> Stretch:
        """Start a new stretch."""
        self.stretch = Stretch(flatten(self.observation), self.just_reset, [whole_numbers(self.base)])
        return self.stretch


@contextmanager
def watching(base: Env) -> Iterator[Watched]:
    """Record the actions and results of the innermost environment."""
    watched = Watched(base)
    original_reset, original_step = base.reset, base.step

    @functools.wraps(original_reset)
    def reset(*args: Any, **kwargs: Any) -> Any:
        result = original_reset(*args, **kwargs)
        watched.observation, watched.just_reset = copy.deepcopy(result[0]), True
        if watched.stretch is not None:
            watched.stretch.over = True
        return result

    def step(action: Any) -> Any:
        action_before = copy.deepcopy(action)
        result = original_step(action)
        watched.observation, watched.just_reset = copy.deepcopy(result[0]), False
        if watched.stretch is not None and not watched.stretch.over:
            watched.stretch.actions.append(action_before)
            watched.stretch.steps.append(_step_arrays(result))
            watched.stretch.numbers.append(whole_numbers(base))
        return result

    base.reset, base.step = reset, step
    try:
        yield watched
    finally:
        del base.reset, base.step


def check_original(env: Env, codec: Codec, states: Sequence[State], stretches: Sequence[Stretch]) -> tuple[str, str]:
    """Result and text: with an exact codec, every number is that of the uninterrupted episode."""
    if not getattr(codec, "exact", False):
        return "skipped", "this codec does not claim to go on as the original did: see the drift"
    base, counters = env.unwrapped, _counters(stretches)
    for index, (state, stretch) in enumerate(zip(states, stretches, strict=True)):
        codec.set_state(base, state)
        _put_back(base, {key: stretch.numbers[0][key] for key in counters}, counters)
        for number, (action, theirs) in enumerate(zip(stretch.actions, stretch.steps, strict=True), start=1):
            worst = difference(_step_arrays(base.step(action)), theirs)
            if worst is not None:
                return "fail", f"state {index} goes on otherwise than the uninterrupted episode: step {number}/{worst}"
    steps = sum(len(stretch.actions) for stretch in stretches)
    return "pass", f"goes on as the uninterrupted episode did, over {steps} steps"


def whole_numbers(base: Env) -> Numbers:
    """The whole-number attributes of an environment and of the environments it holds."""
    return {
        (place, name): int(value)
        for place, holder in enumerate(_holders(base))
        for name, value in vars(holder).items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
    }


def _holders(base: Env) -> list[Env]:
    return [base, *(value for value in vars(base).values() if is_env(value))]


def _step_arrays(result: Any) -> dict[str, Array]:
    """The result of a step as arrays; truncation is left out, because time limits restart."""
    observation, reward, terminated, _, _ = result
    arrays = {name: array.copy() for name, array in flatten(observation).items()}
    return {**arrays, "reward": np.asarray(reward), "terminated": np.asarray(terminated)}


def _counters(stretches: Sequence[Stretch]) -> Numbers:
    """Numbers that rose by one with every step of all stretches, with their value after the reset."""
    counters = dict(stretches[0].numbers[0])
    for stretch in stretches:
        for before, after in pairwise(stretch.numbers):
            counters = {k: v for k, v in counters.items() if k in before and after.get(k) == before[k] + 1}
    return counters


def _put_back(base: Env, original: Numbers, at_reset: Numbers) -> None:
    """Set the step counters that the restore restarted to the values of the original."""
    holders = _holders(base)
    for (place, name), value in original.items():
        live = getattr(holders[place], name, None)
        if live == at_reset[place, name]:
            setattr(holders[place], name, type(live)(value))
