"""One environment under test: its states, its uninterrupted episode, and the checks in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, State, goal_of, is_made, layers
from scout_rl.codecs.compare import Difference, difference, different_arrays, flatten
from scout_rl.codecs.playback import Playback, play, play_state, sample_actions, source_of
from scout_rl.codecs.restarts import check_time_limit, check_wrappers
from scout_rl.codecs.uninterrupted import Stretch, check_original, watching
from scout_rl.codecs.verdict import Check, Drift, Verdict
from scout_rl.codecs.wording import listed
from scout_rl.files.archive import Array, unpack_json


class Trial:
    """Rolls out, restores and compares; every comparison becomes a check."""

    def __init__(self, env: Any, codec: Codec | None, seed: int, n_states: int, horizon: int) -> None:
        self.source = source_of(env)
        self.users_env = is_made(env)
        self.env: Env = env if self.users_env else self.source.make()  # type: ignore[misc]
        self.seed, self.horizon = seed, horizon
        self.seeds = [seed + 10 + i for i in range(n_states)]
        self.checks: list[Check] = []
        self.states: list[State] = []
        self.originals: list[Playback] = []
        self.restored: list[Playback] = []
        self.stretches: list[Stretch] = []
        # Take the states, and record the uninterrupted episode from each.
        with watching(self.env.unwrapped, self.stretches) as begin_stretch:
            start = self.env.reset(seed=self.seed)
            self.reset_form, self.reset_info = flatten(start[0]), start[1]
            self.codec = codec if codec is not None else codec_for(self.env)
            for action_seed in self.seeds:
                self.states.append(self.codec.get_state(self.env))
                begin_stretch()
                playback, start, ended = play(self.env, start, self.actions(action_seed))
                self.originals.append(playback)
                if ended:
                    start = self.env.reset()
            self.left_out: list[str] = getattr(self.codec, "left_out", lambda env: [])(self.env)

    def actions(self, seed: int, count: int | None = None) -> list[Any]:
        """``count`` random actions from a seed; as many as the horizon by default."""
        return sample_actions(self.env, seed, self.horizon if count is None else count)

    def disturb(self, seed: int) -> None:
        """Play another episode, so that a restore that forgets something shows it."""
        play(self.env, self.env.reset(seed=seed), self.actions(seed, 2 + seed % 5))

    def add(self, name: str, problem: str | None, fine: str) -> None:
        """Add a check: it fails with the text ``problem``, or passes with the text ``fine``."""
        self.checks.append(Check(name, "fail" if problem else "pass", problem or fine))

    def add_play(self, name: str, who: str, plays: Iterable[Playback]) -> None:
        """Add a check: ``who`` plays every state as it was played here after its restore."""
        parting = self._parting(plays)
        problem = parting and f"{who} plays state {parting[0]} otherwise: step {parting[1]}"
        self.add(name, problem, f"{who} plays the same")

    def check_here(self) -> None:
        """All checks except the one in a new process."""
        self.restored = [self._play_disturbed(i, 1) for i in range(len(self.states))]
        self._check_round_trip()
        parting = self._parting(self._play_disturbed(i, 2) for i in range(len(self.states)))
        problem = parting and f"state {parting[0]}, step {parting[1]}; {self._blame(parting[0])}"
        self.add("restore vs restore", problem, f"equal in observation, reward and end over {self.horizon} steps")
        self._check_fresh_env()
        self.checks.append(Check("original", *check_original(self.env, self.codec, self.states, self.stretches)))
        self._check_goal()
        self._check_form()
        self.checks.append(Check("time limit", *check_time_limit(self)))
        self.checks.append(Check("wrappers", *check_wrappers(self)))
        if self.in_memory:
            self.checks.append(Check("saving", "note", f"kept in memory, cannot be saved: {self.in_memory}"))
        if self.left_out:
            self.checks.append(Check("not captured", "note", listed(self.left_out)))

    @property
    def in_memory(self) -> str:
        """The names of what the states hold in memory only."""
        states = [state for state in self.states if state.memory is not None]
        return listed(dict.fromkeys(name for state in states for name in state.unsaved or ("something",)))

    def _play(self, env: Env, index: int) -> Playback:
        return play_state(env, self.codec, self.states[index], self.actions(self.seeds[index]))

    def _play_disturbed(self, index: int, disturbance: int, env: Env = None) -> Playback:
        self.disturb(self.seed + 1000 * disturbance + index)
        return self._play(self.env if env is None else env, index)

    def _parting(self, plays: Iterable[Playback]) -> tuple[int, Difference] | None:
        """The first state of which a play differs from that after its restore, and where."""
        pairs = enumerate(zip(self.restored, plays, strict=True))
        return next(((i, worst) for i, pair in pairs if (worst := difference(*pair)) is not None), None)

    def _check_round_trip(self) -> None:
        problem, later = None, set()
        for index, state in enumerate(self.states):
            self.disturb(self.seed + 500 + index)
            self.codec.set_state(self.env, state)
            before, after = _readable(state), _readable(self.codec.get_state(self.env))
            # An attribute that a later episode added stays. The state was read before it existed.
            later |= after.keys() - before.keys()
            changed = different_arrays(before, {n: a for n, a in after.items() if n in before})
            if changed:
                problem = problem or f"state {index} reads back changed: {listed(changed)}"
        stays = f"; came later and stay: {listed(sorted(later))}" if later else ""
        in_memory = "; only their plain data is compared" if self.in_memory else ""
        self.add("round trip", problem, f"{len(self.states)} states read back unchanged{stays}{in_memory}")

    def _blame(self, index: int) -> str:
        """Why two restores differ: the wrapper that keeps something, or the arrays of the state."""
        for layer in reversed(list(layers(self.env))):
            if difference(*(self._play_disturbed(index, disturbance, layer) for disturbance in (3, 4))) is not None:
                if layer is not self.env.unwrapped:
                    return f"equal below {type(layer).__name__}, which keeps something across resets"
                break
        read = []
        for disturbance in (3, 4):
            self.disturb(self.seed + 1000 * disturbance + index)
            self.codec.set_state(self.env, self.states[index])
            read.append(_readable(self.codec.get_state(self.env)))
        changed = different_arrays(*read)
        return f"not restored: {listed(changed)}" if changed else "the cause is outside the captured state"

    def _check_fresh_env(self) -> None:
        if self.source.make is None:
            self.checks.append(Check("fresh environment", "skipped", self.source.why_not))
            return
        fresh = self.source.make()
        fresh.reset(seed=self.seed + 77)
        plays = (self._play(fresh, i) for i in range(len(self.states)))
        self.add_play("fresh environment", "another environment", plays)
        fresh.close()

    def _check_goal(self) -> None:
        problem, known = None, False
        for index, state in enumerate(self.states):
            self.disturb(self.seed + 700 + index)
            observation, _ = self.codec.set_state(self.env, state)
            pairs, goal = [], goal_of(self.codec, state)
            if goal is not None:
                pairs.append(({"goal": goal}, {"goal": goal_of(self.codec, self.codec.get_state(self.env))}))
            original = {k[2:]: v for k, v in self.originals[index].items() if k.startswith("0/desired_goal")}
            if original:
                restored = {k: v for k, v in flatten(observation).items() if k.startswith("desired_goal")}
                pairs.append((original, restored))
            known = known or bool(pairs)
            for worst in filter(None, (difference(*pair) for pair in pairs)):
                problem = problem or f"the goal of state {index} is not restored: {worst}"
        self.add("goal", problem, "the goal of every state is restored")
        if not known:
            self.checks[-1] = Check("goal", "skipped", "this environment names no goal")

    def _check_form(self) -> None:
        observation, info = self.codec.set_state(self.env, self.states[-1])
        restored = flatten(observation)
        problem = None
        for name in dict.fromkeys([*self.reset_form, *restored]):
            ours, theirs = restored.get(name), self.reset_form.get(name)
            numbers = ours is not None and theirs is not None and ours.dtype.kind != "U"
            if ours is None or theirs is None or (numbers and _form(ours) != _form(theirs)):
                problem = f"{name} is not of the form that reset() returns"
        missing = sorted(set(self.reset_info) - set(info))
        note = f"info lacks {', '.join(missing)}, which reset() gives" if missing else None
        if problem is None and getattr(self.codec, "exact", False):
            for stretch, state in zip(self.stretches, self.states, strict=True):
                now, _ = self.codec.set_state(self.env.unwrapped, state)
                worst = difference(flatten(now), stretch.observation)
                if worst is not None and stretch.just_reset:
                    note = f"reset() itself shows another observation than its state: {worst}"
                elif worst is not None:
                    problem = f"the observation of a state is not the original's: {worst}"
        self.add("observation", problem, "observation and info as from reset()")
        if problem is None and note:
            self.checks[-1] = Check("observation", "note", note)

    def verdict(self) -> Verdict:
        """All checks, and the drift of restored from uninterrupted over the steps of both.

        Truncation is left out of the drift, because time limits restart.
        """
        starts, afters = [], []
        for ours, theirs in zip(self.restored, self.originals, strict=True):
            starts.append(difference(*({k: v for k, v in p.items() if k.startswith("0/")} for p in (ours, theirs))))
            both = [k for k in ours if k in theirs and not k.startswith("0/") and not k.endswith("/truncated")]
            afters.append(difference({k: ours[k] for k in both}, {k: theirs[k] for k in both}))
        drift = Drift(_largest(starts), _largest(afters), self.horizon)
        return Verdict(self.source.name, type(self.codec).__name__, tuple(self.checks), drift)

    def close(self) -> None:
        """Close the environment if it was made here."""
        if not self.users_env:
            self.env.close()


def _readable(state: State) -> dict[str, Array]:
    """The arrays of a state, with one text per attribute of its JSON part, so that a difference has a name."""
    arrays = dict(state.arrays)
    if "attributes" in arrays:
        captured = unpack_json(arrays.pop("attributes"))["attributes"]
        arrays.update({f"attributes.{name}": np.array(json.dumps(encoded)) for name, encoded in captured})
    return arrays


def _largest(differences: Iterable[Difference | None]) -> Difference | None:
    return max((d for d in differences if d is not None), key=lambda d: d.size, default=None)


def _form(array: Array) -> tuple[Any, ...]:
    return (array.shape, np.dtype(array.dtype).kind)
