"""How the uninterrupted episode went on below all wrappers, and whether a restored environment goes on like it.

Wrappers start anew at a restore, and are meant to; so do step counters, which are put back here for the comparison.
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
"""Whole-number attributes by the environment that has them (0: the innermost, then those it holds) and name."""


@dataclass
class Stretch:
    """What the innermost environment did from one state on, until it was reset."""

    seen: dict[str, Array]
    """What it showed last before."""
    just_reset: bool
    numbers: list[Numbers]
    """At the state and after every step."""
    actions: list[Any] = field(default_factory=list)
    steps: list[dict[str, Array]] = field(default_factory=list)
    """Observation, reward and termination of every step."""
    over: bool = False


class Watched:
    """The innermost environment's last observation, and the stretch that is being recorded."""

    def __init__(self, base: Env) -> None:
        self.base = base
        self.observation: Any = None
        self.just_reset = False
        self.stretch: Stretch | None = None

    def begin(self) -> Stretch:
        """Record from here on."""
        self.stretch = Stretch(flatten(self.observation), self.just_reset, [whole_numbers(self.base)])
        return self.stretch


@contextmanager
def watching(base: Env) -> Iterator[Watched]:
    """Note what the innermost environment is given and shows, below all wrappers."""
    watched = Watched(base)
    own_reset, own_step = base.reset, base.step

    @functools.wraps(own_reset)
    def reset(*args: Any, **kwargs: Any) -> Any:
        result = own_reset(*args, **kwargs)
        watched.observation, watched.just_reset = copy.deepcopy(result[0]), True
        if watched.stretch is not None:
            watched.stretch.over = True
        return result

    def step(action: Any) -> Any:
        given = copy.deepcopy(action)
        result = own_step(action)
        watched.observation, watched.just_reset = copy.deepcopy(result[0]), False
        if watched.stretch is not None and not watched.stretch.over:
            watched.stretch.actions.append(given)
            watched.stretch.steps.append(_shown(result))
            watched.stretch.numbers.append(whole_numbers(base))
        return result

    base.reset, base.step = reset, step
    try:
        yield watched
    finally:
        del base.reset, base.step


def check_original(env: Env, codec: Codec, states: Sequence[State], stretches: Sequence[Stretch]) -> tuple[str, str]:
    """Status and text: a codec that claims to be exact goes on as the uninterrupted episode did, in every number."""
    if not getattr(codec, "exact", False):
        return "skipped", "this codec does not claim to go on as the original did: see the drift"
    base, counters = env.unwrapped, _counters(stretches)
    for index, (state, stretch) in enumerate(zip(states, stretches, strict=True)):
        codec.set_state(base, state)
        _put_back(base, {key: stretch.numbers[0][key] for key in counters}, counters)
        for number, (action, theirs) in enumerate(zip(stretch.actions, stretch.steps, strict=True), start=1):
            found = difference(_shown(base.step(action)), theirs)
            if found is not None:
                return "fail", f"state {index} goes on otherwise than the uninterrupted episode: step {number}/{found}"
    steps = sum(len(stretch.actions) for stretch in stretches)
    return "pass", f"goes on as the uninterrupted episode did, over {steps} steps"


def whole_numbers(base: Env) -> Numbers:
    """The whole-number attributes of an environment and of those that it holds."""
    return {
        (place, name): int(value)
        for place, holder in enumerate(_holders(base))
        for name, value in vars(holder).items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
    }


def _holders(base: Env) -> list[Env]:
    return [base, *(value for value in vars(base).values() if is_env(value))]


def _shown(result: Any) -> dict[str, Array]:
    """What a step returned; truncation is left out, for time limits are meant to start anew."""
    observation, reward, terminated, _, _ = result
    seen = {name: array.copy() for name, array in flatten(observation).items()}
    return {**seen, "reward": np.asarray(reward), "terminated": np.asarray(terminated)}


def _counters(stretches: Sequence[Stretch]) -> Numbers:
    """Numbers that went up by one with every step of all stretches, with their value after the reset."""
    found = dict(stretches[0].numbers[0])
    for stretch in stretches:
        for before, after in pairwise(stretch.numbers):
            found = {key: start for key, start in found.items() if key in before and after.get(key) == before[key] + 1}
    return found


def _put_back(base: Env, then: Numbers, at_reset: Numbers) -> None:
    """Step counters that the restore started anew, back to where the original had them."""
    holders = _holders(base)
    for (place, name), value in then.items():
        live = getattr(holders[place], name, None)
        if live == at_reset[place, name]:
            setattr(holders[place], name, type(live)(value))
