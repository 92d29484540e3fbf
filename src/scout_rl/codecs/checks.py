"""The checks of a codec in this process: each takes a trial and returns a result and a text."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable

import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, State, goal_of, layers
from scout_rl.codecs.compare import difference, different_arrays, flatten
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.codecs.kinds import SKIPPED
from scout_rl.codecs.playback import Playback, play_state, steps
from scout_rl.codecs.trial import Numbers, Trial, counters, holders, result_arrays, whole_numbers
from scout_rl.codecs.wording import listed
from scout_rl.files.archive import Array, content_hash, unpack_json

Result = tuple[str, str]
"""Of a check: pass, fail, note or skipped, and a text."""

STEPS_WATCHED = 6
LONGEST_LIMIT = 2000
"""Steps that the check of time limits takes at most until one fires."""

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


def round_trip(trial: Trial) -> Result:
    """A restored state reads back unchanged."""
    later: set[str] = set()
    for index, state in enumerate(trial.states):
        before, after = _readable(state), _read_back(trial, index, 500)
        # An attribute that a later episode added stays. The state was read before it existed.
        later |= after.keys() - before.keys()
        changed = different_arrays(before, {n: a for n, a in after.items() if n in before})
        if changed:
            return "fail", f"state {index} reads back changed: {listed(changed)}"
    stays = f"; came later and stay: {listed(sorted(later))}" if later else ""
    in_memory = "; only their plain data is compared" if trial.in_memory else ""
    return "pass", f"{len(trial.states)} states read back unchanged{stays}{in_memory}"


def two_restores(trial: Trial) -> Result:
    """Two restores of every state play the same."""
    parting = trial.parting(trial.replays(2000))
    if parting is None:
        return "pass", f"equal in observation, reward and end over {trial.horizon} steps"
    return "fail", f"state {parting[0]}, step {parting[1]}; {_blame(trial, parting[0])}"


def fresh_environment(trial: Trial) -> Result:
    """Another environment in this process plays the same."""
    if trial.source.make is None:
        return "skipped", str(trial.source.reference)
    fresh = trial.source.make()
    fresh.reset(seed=trial.seed + 77)
    seeded = zip(trial.states, trial.seeds, strict=True)
    plays = [play_state(fresh, trial.codec, state, trial.actions(seed)) for state, seed in seeded]
    fresh.close()
    return plays_the_same(trial, "another environment", plays)


def plays_the_same(trial: Trial, who: str, plays: Iterable[Playback]) -> Result:
    """``who`` plays every state as it was played here after its restore."""
    parting = trial.parting(plays)
    if parting is None:
        return "pass", f"{who} plays the same"
    return "fail", f"{who} plays state {parting[0]} otherwise: step {parting[1]}"


def original(trial: Trial) -> Result:
    """With an exact codec, every number is that of the uninterrupted episode, below all wrappers.

    Wrappers and step counters restart at a restore, as they should. For the comparison the counters are put back.
    """
    if not getattr(trial.codec, "exact", False):
        why_not = "this codec computes some values anew, so it may differ from the original: see the last line"
        return "skipped", why_not
    base, at_reset = trial.env.unwrapped, counters([stretch.numbers for stretch in trial.stretches])
    for index, (state, stretch) in enumerate(zip(trial.states, trial.stretches, strict=True)):
        trial.codec.set_state(base, state)
        for (place, name), value in at_reset.items():
            holder = holders(base)[place]
            live = getattr(holder, name, None)
            if live == value:
                setattr(holder, name, type(live)(stretch.numbers[0][place, name]))
        for number, (action, theirs) in enumerate(stretch.steps, start=1):
            worst = difference(result_arrays(base.step(action)), theirs)
            if worst is not None:
                return "fail", f"state {index} goes on otherwise than the uninterrupted episode: step {number}/{worst}"
    compared = sum(len(stretch.steps) for stretch in trial.stretches)
    return "pass", f"goes on as the uninterrupted episode did, over {compared} steps"


def goal(trial: Trial) -> Result:
    """The goal of a state is that of the restored environment, to the codec and in the observation."""
    named = False
    for index, state in enumerate(trial.states):
        start, _ = trial.restore(index, 700)
        expected = {k[2:]: v for k, v in trial.originals[index].items() if k.startswith("0/desired_goal")}
        found = {k: v for k, v in flatten(start).items() if k.startswith("desired_goal") and expected}
        in_state = goal_of(trial.codec, state)
        if in_state is not None:
            expected = {"goal": in_state, **expected}
            found["goal"] = goal_of(trial.codec, trial.codec.get_state(trial.env))
        worst = difference(expected, found)
        if worst is not None:
            return "fail", f"the goal of state {index} is not restored: {worst}"
        named = named or bool(expected)
    return ("pass", "the goal of every state is restored") if named else ("skipped", "this environment names no goal")


def observation(trial: Trial) -> Result:
    """Observation and info have the form of those of reset(), and with an exact codec are the original's."""
    start, info = trial.codec.set_state(trial.env, trial.states[-1])
    restored = flatten(start)
    for name in dict.fromkeys([*trial.reset_form, *restored]):
        ours, theirs = restored.get(name), trial.reset_form.get(name)
        if ours is None or theirs is None or (ours.dtype.kind != "U" and _form(ours) != _form(theirs)):
            return "fail", f"{name} is not of the form that reset() returns"
    missing = sorted(set(trial.reset_info) - set(info))
    note = f"info lacks {', '.join(missing)}, which reset() gives" if missing else None
    if getattr(trial.codec, "exact", False):
        for stretch, state in zip(trial.stretches, trial.states, strict=True):
            now, _ = trial.codec.set_state(trial.env.unwrapped, state)
            worst = difference(flatten(now), stretch.observation)
            if worst is not None and not stretch.just_reset:
                return "fail", f"the observation of a state is not the original's: {worst}"
            if worst is not None:
                note = f"reset() itself shows another observation than its state: {worst}"
    return ("note", note) if note else ("pass", "observation and info as from reset()")


def time_limit(trial: Trial) -> Result:
    """Every step counter has the same value after a restore as after a reset.

    A step counter is any whole number, on a wrapper or on the environment, that rises by one with every step and that
    ``reset()`` sets back. One that ``reset()`` leaves running counts something else than the steps of an episode.
    """
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
    innermost = len(list(layers(trial.env))) - 1
    if any(place < innermost for place, _ in late):
        remedy = "set_state must call the reset() of the wrappers too, as scout_rl.codecs.codec.restart does"
        return "fail", f"{values}: {remedy}"
    remedy = _remedy(trial, late, innermost)
    trial.env.reset(seed=trial.seed)
    from_reset = _steps_to_truncation(trial)
    trial.codec.set_state(trial.env, state)
    from_restore = _steps_to_truncation(trial)
    if from_restore is not None and (from_reset is None or from_restore < from_reset):
        return "fail", f"{values}: the episode is cut after {from_restore} steps, not {from_reset}; {remedy}"
    return "note", f"{values}; no time limit was seen to depend on it; if one does, {remedy}"


def wrappers(trial: Trial) -> Result:
    """Every wrapper is the same after two restores."""
    snapshots = []
    last = len(trial.states) - 1
    for disturbance in (5000, 6000):
        trial.restore(last, disturbance)
        snapshots.append(_wrapper_attributes(trial.env))
    kept = [name for name in snapshots[0] if snapshots[0][name] != snapshots[1].get(name)]
    if kept:
        return "note", f"kept across episodes: {', '.join(kept)}"
    names = [type(layer).__name__ for layer in layers(trial.env)][:-1]
    return "pass", f"restarted: {', '.join(names)}" if names else "there are none"


def _read_back(trial: Trial, index: int, disturbance: int) -> dict[str, Array]:
    trial.restore(index, disturbance)
    return _readable(trial.codec.get_state(trial.env))


def _readable(state: State) -> dict[str, Array]:
    """The arrays of a state, with one text per attribute of its JSON part, so that a difference has a name."""
    arrays = dict(state.arrays)
    if "attributes" in arrays:
        captured = unpack_json(arrays.pop("attributes"))["attributes"]
        arrays.update({f"attributes.{name}": np.array(json.dumps(encoded)) for name, encoded in captured})
    return arrays


def _blame(trial: Trial, index: int) -> str:
    """Why two restores differ: the wrapper that keeps something, or the arrays of the state."""
    for layer in reversed(list(layers(trial.env))):
        if difference(*(trial.replay(index, disturbance, layer) for disturbance in (3000, 4000))) is not None:
            if layer is not trial.env.unwrapped:
                return f"equal below {type(layer).__name__}, which keeps something across resets"
            break
    changed = different_arrays(*(_read_back(trial, index, disturbance) for disturbance in (3000, 4000)))
    return f"not restored: {listed(changed)}" if changed else "the cause is outside the captured state"


def _form(array: Array) -> tuple[tuple[int, ...], str]:
    return array.shape, array.dtype.kind


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


def _find_counters(trial: Trial) -> tuple[Numbers, State | None]:
    """Step counters with their value after a reset, and a state some steps into an episode."""
    for attempt in range(5):
        trial.env.reset(seed=trial.seed + 40 + attempt)
        rows = [whole_numbers(trial.env)]
        for result in steps(trial.env, trial.actions(trial.seed + 40 + attempt, STEPS_WATCHED)):
            ended = result[2] or result[3]
            rows.append(whole_numbers(trial.env))
        if not ended:
            state = trial.codec.get_state(trial.env)
            trial.env.reset(seed=trial.seed + 50)
            now = whole_numbers(trial.env)
            trial.disturb(trial.seed + 50)  # a restore that forgets to restart them must show it
            return {key: start for key, start in counters([rows]).items() if now.get(key) == start}, state
    return {}, None


def _remedy(trial: Trial, late: Numbers, innermost: int) -> str:
    """What to do about step counters of the environment, or of one that it holds, that run on."""
    names = tuple(dict.fromkeys(name for _, name in late))
    if {place for place, _ in late} != {innermost} or not hasattr(trial.codec, "counters"):
        return f"set_state must set {' and '.join(names)} back as reset() does"
    named = (*trial.codec.counters, *names)
    if isinstance(trial.codec, DeepcopyCodec):
        return f"name what counts the steps: DeepcopyCodec(counters={named!r})"
    return f"name what counts the steps: a subclass of {type(trial.codec).__name__} with counters = {named!r}"


def _steps_to_truncation(trial: Trial) -> int | None:
    for number, (*_, truncated, _) in enumerate(steps(trial.env, trial.actions(trial.seed, LONGEST_LIMIT)), start=1):
        if truncated:
            return number
    return None
