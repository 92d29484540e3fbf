"""One environment under test: its states, and what is played from them, uninterrupted and restored."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, Start, State, is_made, layers
from scout_rl.codecs.compare import Difference, difference, flatten
from scout_rl.codecs.kinds import is_env
from scout_rl.codecs.playback import Playback, play, sample_actions, source_of, step_arrays
from scout_rl.codecs.verdict import Check, Drift
from scout_rl.codecs.wording import listed

Numbers = dict[tuple[int, str], int]
"""Whole-number attributes by their holder's index in `holders`, and name."""


class Trial:
    """Takes states in a random rollout, and plays on from each: uninterrupted at first, then restored."""

    def __init__(self, env: Any, codec: Codec | None, seed: int, n_states: int, horizon: int) -> None:
        self.source = source_of(env)
        self.users_env = is_made(env)
        self.env: Env = env if self.users_env else self.source.make()  # type: ignore[misc]
        self.seed, self.horizon = seed, horizon
        self.seeds = [seed + 10 + i for i in range(n_states)]
        self.checks: list[Check] = []
        self.states: list[State] = []
        self.originals: list[Playback] = []
        self.stretches: list[Stretch] = []
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
        self.restored = self.replays(1000)

    def actions(self, seed: int, count: int | None = None) -> list[Any]:
        """``count`` random actions from a seed; as many as the horizon by default."""
        return sample_actions(self.env, seed, self.horizon if count is None else count)

    def disturb(self, seed: int) -> None:
        """Play another episode, so that a restore that forgets something shows it."""
        play(self.env, self.env.reset(seed=seed), self.actions(seed, 2 + seed % 5))

    def restore(self, index: int, disturbance: int, env: Env = None) -> Start:
        """Restore a state after another episode; in ``env``, if a layer of the environment is to be restored alone."""
        self.disturb(self.seed + disturbance + index)
        return self.codec.set_state(self.env if env is None else env, self.states[index])

    def replay(self, index: int, disturbance: int, env: Env = None) -> Playback:
        """Restore a state after another episode, and take its actions."""
        env = self.env if env is None else env
        return play(env, self.restore(index, disturbance, env), self.actions(self.seeds[index]))[0]

    def replays(self, disturbance: int) -> list[Playback]:
        """`replay` of every state."""
        return [self.replay(index, disturbance) for index in range(len(self.states))]

    def parting(self, plays: Iterable[Playback]) -> tuple[int, Difference] | None:
        """The first state of which a play differs from that after its restore, and where."""
        pairs = enumerate(zip(self.restored, plays, strict=True))
        return next(((i, worst) for i, pair in pairs if (worst := difference(*pair)) is not None), None)

    @property
    def in_memory(self) -> str:
        """The names of what the states hold in memory only."""
        states = [state for state in self.states if state.memory is not None]
        return listed(dict.fromkeys(name for state in states for name in state.unsaved or ("something",)))

    def drift(self) -> Drift:
        """The drift of restored from uninterrupted over the steps of both.

        Truncation is left out, because time limits restart.
        """
        starts, afters = [], []
        for ours, theirs in zip(self.restored, self.originals, strict=True):
            starts.append(difference(*({k: v for k, v in p.items() if k.startswith("0/")} for p in (ours, theirs))))
            both = [k for k in ours if k in theirs and not k.startswith("0/") and not k.endswith("/truncated")]
            afters.append(difference({k: ours[k] for k in both}, {k: theirs[k] for k in both}))
        return Drift(_largest(starts), _largest(afters), self.horizon)

    def close(self) -> None:
        """Close the environment if it was made here."""
        if not self.users_env:
            self.env.close()


def _largest(differences: Iterable[Difference | None]) -> Difference | None:
    return max((d for d in differences if d is not None), key=lambda d: d.size, default=None)


class Stretch:
    """What the innermost environment did from one state until its reset."""

    def __init__(self, base: Env, observation: Any, just_reset: bool) -> None:
        self.observation = flatten(observation)
        """Its last observation before."""
        self.just_reset, self.over = just_reset, False
        self.numbers = [whole_numbers(base)]
        """Whole numbers at the state and after every step."""
        self.steps: list[tuple[Any, Playback]] = []
        """The action of every step, and its result."""


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
            stretches[-1].steps.append((action_before, result_arrays(result)))
            stretches[-1].numbers.append(whole_numbers(base))
        return result

    own = {name: method for name, method in vars(base).items() if name in ("reset", "step")}
    base.reset, base.step = reset, step
    try:
        yield begin
    finally:
        del base.reset, base.step
        for name, method in own.items():
            setattr(base, name, method)


def result_arrays(result: Any) -> Playback:
    """The result of a step; truncation is left out, because time limits restart."""
    arrays = step_arrays(result)
    del arrays["truncated"]
    return arrays


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
