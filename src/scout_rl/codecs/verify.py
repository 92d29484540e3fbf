"""Does a codec restore an environment exactly? A verdict that says what was checked and names what drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scout_rl.archive import Array, unpack_json
from scout_rl.codecs import codec_for
from scout_rl.codecs.attributes import readable
from scout_rl.codecs.codec import Codec, Env, State, layers
from scout_rl.codecs.compare import Difference, difference, different_arrays, flatten
from scout_rl.codecs.replay import (
    EnvSource,
    Job,
    Playback,
    at_step,
    codec_reference,
    continue_play,
    ended,
    last_observation,
    play,
    play_in_new_process,
    sample_actions,
)
from scout_rl.codecs.restarts import check_time_limit, check_wrappers
from scout_rl.codecs.verdict import Check, Drift, Verdict

__all__ = ["Check", "Drift", "Verdict", "verify_codec", "verify_codec_main", "verify_codecs"]


def verify_codec(
    env: Any,
    codec: Codec | None = None,
    *,
    seed: int = 0,
    n_states: int = 3,
    horizon: int = 10,
    new_process: bool = True,
) -> Verdict:
    """Check that restoring states of ``env`` is exact.

    ``env`` is an id, a pair (id, keyword arguments), a function that makes it, or the environment itself.
    ``n_states`` states of a random rollout are restored and followed for ``horizon`` random actions.
    """
    (verdict,) = verify_codecs(
        [env], codec, seed=seed, n_states=n_states, horizon=horizon, new_process=new_process
    )
    return verdict


def verify_codecs(
    envs: Sequence[Any],
    codec: Codec | None = None,
    *,
    seed: int = 0,
    n_states: int = 3,
    horizon: int = 10,
    new_process: bool = True,
) -> list[Verdict]:
    """:func:`verify_codec` for several environments; one new process plays the states of all of them."""
    trials = [_Trial(env, codec, seed, n_states, horizon) for env in envs]
    for trial in trials:
        trial.check_here()
    if new_process:
        _check_new_process(trials)
    for trial in trials:
        trial.close()
    return [trial.verdict() for trial in trials]


def verify_codec_main(env_id: str, kwargs: Mapping[str, Any] | None = None) -> int:
    """Print the verdict on a registered environment; the exit status is 0 where it restores exactly."""
    try:
        verdict = verify_codec((env_id, dict(kwargs or {})))
    except ValueError as error:
        print(f"{env_id}: {error}")
        return 1
    print(verdict)
    return 0 if verdict.ok else 1


class _Trial:
    """One environment under test: its states, and how the uninterrupted episodes went on from them."""

    def __init__(self, env: Any, codec: Codec | None, seed: int, n_states: int, horizon: int) -> None:
        self.source = EnvSource.of(env)
        self.given = env if hasattr(env, "unwrapped") else None
        self.env: Env = self.given if self.given is not None else self.source.make()  # type: ignore[misc]
        self.seed, self.horizon = seed, horizon
        self.seeds = [seed + 10 + i for i in range(n_states)]
        self.checks: list[Check] = []
        self.states: list[State] = []
        self.originals: list[Playback] = []
        self.restored: list[Playback] = []
        observation, self.reset_info = self.env.reset(seed=seed)
        self.reset_form = flatten(observation)
        self.codec = codec if codec is not None else codec_for(self.env)
        for action_seed in self.seeds:
            self.states.append(self.codec.get_state(self.env))
            playback = continue_play(self.env, observation, self.actions(action_seed))
            self.originals.append(playback)
            observation = last_observation(playback, observation)
            if ended(playback):
                observation, _ = self.env.reset()

    def actions(self, seed: int, count: int | None = None) -> list[Any]:
        return sample_actions(self.env, seed, self.horizon if count is None else count)

    def disturb(self, seed: int) -> None:
        """Another episode, so that what a restore forgets is seen."""
        self.env.reset(seed=seed)
        continue_play(self.env, {}, self.actions(seed, 2 + seed % 5))

    def add(self, name: str, problem: str | None, fine: str, status: str = "fail") -> None:
        self.checks.append(Check(name, status if problem else "pass", problem or fine))

    def check_here(self) -> None:
        self.restored = [self._play_disturbed(i, 1) for i in range(len(self.states))]
        self._check_round_trip()
        self._check_restore_twice()
        self._check_fresh_env()
        self._check_goal()
        self._check_form()
        self.checks.append(Check("time limit", *check_time_limit(self)))
        self.checks.append(Check("wrappers", *check_wrappers(self)))
        left_out: list[str] = getattr(self.codec, "left_out", lambda env: [])(self.env)
        if left_out:
            self.checks.append(Check("not captured", "note", ", ".join(left_out)))

    def _play_disturbed(self, index: int, disturbance: int) -> Playback:
        self.disturb(self.seed + 1000 * disturbance + index)
        return play(self.env, self.codec, self.states[index], self.actions(self.seeds[index]))

    def _check_round_trip(self) -> None:
        problem = None
        for index, state in enumerate(self.states):
            self.disturb(self.seed + 500 + index)
            self.codec.set_state(self.env, state)
            changed = different_arrays(_readable(state), _readable(self.codec.get_state(self.env)))
            if changed and problem is None:
                problem = f"state {index} reads back changed: {_some(changed)}"
        self.add("round trip", problem, f"{len(self.states)} states read back unchanged")

    def _check_restore_twice(self) -> None:
        for index in range(len(self.states)):
            found = difference(self.restored[index], self._play_disturbed(index, 2))
            if found is not None:
                self.add("restore vs restore", f"state {index}, step {found}; {self._blame(index)}", "")
                return
        self.add(
            "restore vs restore", None, f"equal in observation, reward and end over {self.horizon} steps"
        )

    def _blame(self, index: int) -> str:
        """The innermost layer at which two restores differ, and the arrays that differ in the state."""
        for layer in reversed(list(layers(self.env))):
            plays = []
            for disturbance in (3, 4):
                self.disturb(self.seed + 1000 * disturbance + index)
                plays.append(play(layer, self.codec, self.states[index], self.actions(self.seeds[index])))
            if difference(*plays) is not None:
                if layer is not self.env.unwrapped:
                    return f"equal below {type(layer).__name__}, which keeps something across resets"
                break
        read = []
        for disturbance in (3, 4):
            self.disturb(self.seed + 1000 * disturbance + index)
            self.codec.set_state(self.env, self.states[index])
            read.append(_readable(self.codec.get_state(self.env)))
        changed = different_arrays(*read)
        return f"not restored: {_some(changed)}" if changed else "the cause is outside the captured state"

    def _check_fresh_env(self) -> None:
        if self.source.make is None:
            self.checks.append(Check("fresh environment", "skipped", self.source.why_not))
            return
        fresh = self.source.make()
        fresh.reset(seed=self.seed + 77)
        problem = None
        for index, state in enumerate(self.states):
            found = difference(
                self.restored[index], play(fresh, self.codec, state, self.actions(self.seeds[index]))
            )
            if found is not None and problem is None:
                problem = f"another environment plays state {index} otherwise: step {found}"
        fresh.close()
        self.add("fresh environment", problem, "another environment plays the same")

    def _check_goal(self) -> None:
        goal_of: Any = getattr(self.codec, "goal", lambda state: None)
        problem, known = None, False
        for index, state in enumerate(self.states):
            self.disturb(self.seed + 700 + index)
            observation, _ = self.codec.set_state(self.env, state)
            pairs: list[tuple[Mapping[str, Array], Mapping[str, Array]]] = []
            if goal_of(state) is not None:
                now = self.codec.get_state(self.env)
                pairs.append(({"goal": goal_of(state)}, {"goal": goal_of(now)}))
            original = {k[2:]: v for k, v in self.originals[index].items() if k.startswith("0/desired_goal")}
            if original:
                now_seen = {k: v for k, v in flatten(observation).items() if k.startswith("desired_goal")}
                pairs.append((original, now_seen))
            known = known or bool(pairs)
            for pair in pairs:
                found = difference(*pair)
                if found is not None and problem is None:
                    problem = f"the goal of state {index} is not restored: {found}"
        if not known:
            self.checks.append(Check("goal", "skipped", "this environment names no goal"))
        else:
            self.add("goal", problem, "the goal of every state is restored")

    def _check_form(self) -> None:
        observation, info = self.codec.set_state(self.env, self.states[-1])
        got = flatten(observation)
        problem = None
        for name in dict.fromkeys([*self.reset_form, *got]):
            ours, theirs = got.get(name), self.reset_form.get(name)
            numbers = ours is not None and theirs is not None and ours.dtype.kind != "U"
            if ours is None or theirs is None or (numbers and _form(ours) != _form(theirs)):
                problem = f"{name} is not of the form that reset() returns"
        if problem is None and getattr(self.codec, "exact", False):
            for index, playback in enumerate(self.restored):
                found = difference(at_step(playback, 0), at_step(self.originals[index], 0))
                if found is not None:
                    problem = f"the observation of state {index} is not the original's: {found}"
        missing = sorted(set(self.reset_info) - set(info))
        self.add("observation", problem, "observation and info as from reset()")
        if problem is None and missing:
            text = f"info lacks {', '.join(missing)}, which reset() gives"
            self.checks[-1] = Check("observation", "note", text)

    def drift(self) -> Drift:
        start: Difference | None = None
        after: Difference | None = None
        for ours, theirs in zip(self.restored, self.originals, strict=True):
            start = _worse(start, difference(at_step(ours, 0), at_step(theirs, 0)))
            later = [{k: v for k, v in p.items() if not k.startswith("0/")} for p in (ours, theirs)]
            after = _worse(after, difference(*later))
        return Drift(start, after, self.horizon)

    def verdict(self) -> Verdict:
        return Verdict(self.source.name, type(self.codec).__name__, tuple(self.checks), self.drift())

    def close(self) -> None:
        if self.given is None:
            self.env.close()


def _check_new_process(trials: Sequence[_Trial]) -> None:
    able: list[tuple[_Trial, Job]] = []
    for trial in trials:
        codec = codec_reference(trial.codec)
        if trial.source.reference is None or isinstance(codec, str):
            why = trial.source.why_not if trial.source.reference is None else str(codec)
            trial.checks.append(Check("new process", "skipped", why))
        else:
            job = Job(trial.source.reference, codec, trial.states, trial.seeds, trial.horizon)
            able.append((trial, job))
    results = play_in_new_process([job for _, job in able]) if able else []
    for (trial, _), result in zip(able, results, strict=True):
        problem: str | None = None
        if isinstance(result, str):
            problem = f"the new process failed: {result}"
        else:
            for index, (ours, theirs) in enumerate(zip(trial.restored, result, strict=True)):
                found = difference(ours, theirs)
                if found is not None and problem is None:
                    problem = f"a new process plays state {index} otherwise: step {found}"
        trial.add("new process", problem, "a new process plays the same")


def _readable(state: State) -> dict[str, Array]:
    """The arrays of a state with its JSON part taken apart, so that a difference has a name."""
    arrays = dict(state.arrays)
    if "attributes" in arrays:
        captured = readable(unpack_json(arrays.pop("attributes")))
        arrays.update({f"attributes.{name}": np.array(text) for name, text in captured.items()})
    return arrays


def _some(changed: Sequence[Difference], most: int = 4) -> str:
    named = ", ".join(str(d) for d in changed[:most])
    return named + (f" and {len(changed) - most} more" if len(changed) > most else "")


def _worse(a: Difference | None, b: Difference | None) -> Difference | None:
    return max((d for d in (a, b) if d is not None), key=lambda d: d.size, default=None)


def _form(array: Array) -> tuple[Any, ...]:
    return (array.shape, np.dtype(array.dtype).kind)
