"""Do time limits and wrappers restart with a restored episode?

A step counter is any whole number, on a wrapper or on the environment, that rises by one with every step and that
``reset()`` sets back. One that ``reset()`` leaves running counts something else than the steps of an episode.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, State, layers
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.codecs.kinds import SKIPPED
from scout_rl.codecs.uninterrupted import Numbers, counters, holders, whole_numbers
from scout_rl.files.archive import content_hash

if TYPE_CHECKING:
    from scout_rl.codecs.trial import Trial

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


def check_time_limit(trial: Trial) -> tuple[str, str]:
    """Result and text: every step counter has the same value after a restore as after a reset."""
    at_reset, state = _find_counters(trial)
    if state is None:
        return "skipped", f"no episode lasted {STEPS_WATCHED} steps"
    trial.codec.set_state(trial.env, state)
    now, names = whole_numbers(trial.env), [type(holder).__name__ for holder in holders(trial.env)]
    late = {key: now.get(key, 0) for key, start in at_reset.items() if now.get(key) != start}
    if not late:
        named = sorted({f"{names[place]}.{name}" for place, name in at_reset})
        return "pass", f"restarted: {', '.join(named)}" if named else "no step counter found"
    values = ", ".join(f"{names[place]}.{name} is {value} after a restore" for (place, name), value in late.items())
    remedy = _remedy(trial, late)
    if any(place < len(list(layers(trial.env))) - 1 for place, _ in late):  # a wrapper's
        return "fail", f"{values}: {remedy}"
    trial.env.reset(seed=trial.seed)
    from_reset = _steps_to_truncation(trial)
    trial.codec.set_state(trial.env, state)
    from_restore = _steps_to_truncation(trial)
    if from_restore is not None and (from_reset is None or from_restore < from_reset):
        return "fail", f"{values}: the episode is cut after {from_restore} steps, not {from_reset}; {remedy}"
    return "note", f"{values}; no time limit was seen to depend on it; if one does, {remedy}"


def check_wrappers(trial: Trial) -> tuple[str, str]:
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


def _find_counters(trial: Trial) -> tuple[Numbers, State | None]:
    """Step counters with their value after a reset, and a state some steps into an episode."""
    for attempt in range(5):
        trial.env.reset(seed=trial.seed + 40 + attempt)
        rows = [whole_numbers(trial.env)]
        for action in trial.actions(trial.seed + 40 + attempt, STEPS_WATCHED):
            _, _, terminated, truncated, _ = trial.env.step(action)
            rows.append(whole_numbers(trial.env))
            if terminated or truncated:
                break
        else:
            state = trial.codec.get_state(trial.env)
            trial.env.reset(seed=trial.seed + 50)
            now = whole_numbers(trial.env)
            trial.disturb(trial.seed + 50)  # a restore that forgets to restart them must show it
            return {key: start for key, start in counters([rows]).items() if now.get(key) == start}, state
    return {}, None


def _remedy(trial: Trial, late: Numbers) -> str:
    """What to do about step counters that run on."""
    places, names = {place for place, _ in late}, tuple(dict.fromkeys(name for _, name in late))
    innermost = len(list(layers(trial.env))) - 1
    if min(places) < innermost:
        return "set_state must call the reset() of the wrappers too, as scout_rl.codecs.codec.restart does"
    if places == {innermost} and hasattr(trial.codec, "counters"):
        named = (*trial.codec.counters, *names)
        if isinstance(trial.codec, DeepcopyCodec):
            return f"name what counts the steps: DeepcopyCodec(counters={named!r})"
        return f"name what counts the steps: a subclass of {type(trial.codec).__name__} with counters = {named!r}"
    return f"set_state must set {' and '.join(names)} back as reset() does"


def _steps_to_truncation(trial: Trial) -> int | None:
    for number, action in enumerate(trial.actions(trial.seed, LONGEST_LIMIT), start=1):
        _, _, terminated, truncated, _ = trial.env.step(action)
        if terminated or truncated:
            return number if truncated else None
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
