"""Do time limits and wrappers restart with a restored episode?

A step counter is any whole number, on a wrapper or on the environment, that rises by one with every step.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Codec, Env, State, layers
from scout_rl.codecs.kinds import SKIPPED, is_env
from scout_rl.files.archive import content_hash

STEPS_WATCHED = 6
LONGEST_LIMIT = 2000
"""Steps that the check takes at most until a time limit fires."""

ACROSS_EPISODES = {
    "RecordEpisodeStatistics": {
        "episode_start_time",
        "episode_count",
        "time_queue",
        "return_queue",
        "length_queue",
    },
    "PassiveEnvChecker": {"_previous_data", "checked_data_reuse", "checked_reset", "checked_step"},
}
"""Attributes that Gymnasium's wrappers keep across episodes on purpose and never show to the agent."""


class UnderTest(Protocol):
    """What these checks need of the environment under test."""

    env: Env
    codec: Codec
    states: list[State]
    seed: int

    def disturb(self, seed: int) -> None:
        """Play another episode for a few steps."""

    def actions(self, seed: int, count: int | None = None) -> list[Any]:
        """Random actions from a seed."""


def check_time_limit(trial: UnderTest) -> tuple[str, str]:
    """Result and text: every step counter has the same value after a restore as after a reset."""
    counters, state = _find_counters(trial)
    if state is None:
        return "skipped", f"no episode lasted {STEPS_WATCHED} steps"
    trial.codec.set_state(trial.env, state)
    now = _numbers(trial.env)
    late = {name: now.get(name, 0) for name, start in counters.items() if now.get(name) != start}
    if not late:
        named = ", ".join(sorted(counters)) or "no step counter found"
        return "pass", f"restarted: {named}" if counters else named
    wrapper_names = {type(layer).__name__ for layer in layers(trial.env) if layer is not trial.env.unwrapped}
    values = ", ".join(f"{name} is {value} after a restore" for name, value in late.items())
    if any(name.split(".")[0] in wrapper_names for name in late):
        return "fail", values
    from_reset, from_restore = _steps_to_truncation(trial, None), _steps_to_truncation(trial, state)
    if from_restore is not None and (from_reset is None or from_restore < from_reset):
        return "fail", f"{values}: the episode is cut after {from_restore} steps, not {from_reset}"
    return "note", f"{values}; no time limit was seen to depend on it"


def check_wrappers(trial: UnderTest) -> tuple[str, str]:
    """Result and text: every wrapper is the same after two restores, or the attributes that differ."""
    snapshots = []
    for disturbance in (5, 6):
        trial.disturb(trial.seed + 1000 * disturbance + disturbance)
        trial.codec.set_state(trial.env, trial.states[-1])
        snapshots.append(_wrapper_attributes(trial.env))
    kept = [name for name in snapshots[0] if snapshots[0][name] != snapshots[1].get(name)]
    if kept:
        return "note", f"kept across episodes: {', '.join(kept)}"
    names = [type(layer).__name__ for layer in layers(trial.env)][:-1]
    return "pass", f"restarted: {', '.join(names)}" if names else "there are none"


def _find_counters(trial: UnderTest) -> tuple[dict[str, int], State | None]:
    """Step counters with their value after a reset, and a state some steps into an episode."""
    for attempt in range(5):
        trial.env.reset(seed=trial.seed + 40 + attempt)
        rows = [_numbers(trial.env)]
        for action in trial.actions(trial.seed + 40 + attempt, STEPS_WATCHED):
            _, _, terminated, truncated, _ = trial.env.step(action)
            rows.append(_numbers(trial.env))
            if terminated or truncated:
                break
        else:
            steady = {name: start for name, start in rows[0].items() if _rises_by_one([row.get(name) for row in rows])}
            return steady, trial.codec.get_state(trial.env)
    return {}, None


def _rises_by_one(values: Sequence[int | None]) -> bool:
    numbers = [v for v in values if v is not None]
    return len(numbers) == len(values) and all(b - a == 1 for a, b in pairwise(numbers))


def _numbers(env: Env) -> dict[str, int]:
    """The whole-number attributes of every layer and of the environments that the innermost holds."""
    held = [value for value in vars(env.unwrapped).values() if is_env(value)]
    return {
        f"{type(layer).__name__}.{name}": int(value)
        for layer in [*layers(env), *held]
        for name, value in vars(layer).items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool)
    }


def _steps_to_truncation(trial: UnderTest, state: State | None) -> int | None:
    if state is None:
        trial.env.reset(seed=trial.seed)
    else:
        trial.codec.set_state(trial.env, state)
    for number, action in enumerate(trial.actions(trial.seed, LONGEST_LIMIT), start=1):
        _, _, terminated, truncated, _ = trial.env.step(action)
        if truncated:
            return number
        if terminated:
            return None
    return None


def _wrapper_attributes(env: Env) -> dict[str, str]:
    """A hash of every attribute of every wrapper."""
    hashes = {}
    for layer in list(layers(env))[:-1]:
        cls = type(layer)
        ignored = SKIPPED | {"env"} | ACROSS_EPISODES.get(cls.__name__, set())
        for name, value in vars(layer).items():
            if name not in ignored:
                holder = types.SimpleNamespace(**{name: value})
                captured = Capture(holder, packages={cls.__module__.split(".")[0]})
                hashes[f"{cls.__name__}.{name}"] = content_hash(captured.arrays, captured.value)
    return hashes
