"""Ladders from anyone's policy: the shortest success, the sources in order, and nothing left to chance."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from scout_rl.codecs import codec_for
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.recorder import Recorder

HORIZON = 40


class Corridor(gym.Env):
    """Walk along a corridor to the flag of the context; the wall is at -3."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-99, 99, (2,), np.int64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.flag = 0, 4
        return self._get_obs(), {}

    def step(self, action):
        self.x = max(-3, self.x + (1 if action else -1))
        reached = self.x == self.flag
        return self._get_obs(), float(reached), reached, False, {"is_success": reached}

    def _get_obs(self):
        return np.array([self.x, self.flag])


def corridor():
    return gym.wrappers.TimeLimit(Corridor(), HORIZON)


def reset_to(env, context, level):
    assert level == 0
    env.reset()
    env.unwrapped.flag = 4 + context


def mostly_right(observation, generator):
    return int(generator.random() < 0.75)


def only(contexts, act):
    """A policy that walks to the flags of those contexts, and away from all others."""
    return lambda observation, generator: act(observation, generator) if observation[1] - 4 in contexts else 0


def by_hand(context, seed):
    """The positions of the shortest of five walks, and how many reached the flag, in plain Python."""
    walks = []
    for k in range(5):
        generator, path = np.random.default_rng((*seed, context, k)), [0]
        while path[-1] != 4 + context and len(path) <= HORIZON:
            path.append(max(-3, path[-1] + (1 if generator.random() < 0.75 else -1)))
        if path[-1] == 4 + context:
            walks.append(path)
    return min(walks, key=len), len(walks)


def positions(ladder, context):
    env = corridor()
    env.reset()
    return [int(codec_for(env).set_state(env, cell[0])[0][0]) for cell in ladder.cells[context]]


def demonstrations(n):
    recorder = Recorder(corridor())
    for x in range(n):
        recorder.reset()
        recorder.unwrapped.flag = 4 + x
        recorder._episode = None
        start = recorder.codec.get_state(recorder)
        recorder.codec.set_state(recorder, start)
        for _ in range(4 + x):
            recorder.step(1)
    return recorder.trajectories


@pytest.fixture(scope="module")
def ladder():
    """Own policy in even contexts, the fallback in 1 and 5, trajectories in 3 and 7."""
    return Ladder.from_policy(
        corridor(),
        only({0, 2, 4, 6}, mostly_right),
        reset_to,
        8,
        fallbacks=[only({1, 5, 6}, mostly_right)],
        trajectories=demonstrations(8),
        seed=3,
    )


def test_sources_in_order_and_the_bootstrap_fraction(ladder):
    sources = ladder.sources
    assert sources.names == ("policy", "fallback 1", "trajectory")
    assert sources.source_of == (0, 1, 0, 2, 0, 1, 0, 2)
    assert sources.bootstrap_fraction == 0.5  # contexts 1, 3, 5 and 7 of 8
    assert sources.succeeded[0][1::2] == (0, 0, 0, 0)
    assert sources.succeeded[1][0::2] == (0, 0, 0, 0)  # not asked: the policy had solved them
    assert str(sources) == (
        "policy ladder: of 8 contexts 4 from the policy, 2 from the fallback 1, 2 from the trajectory; "
        "bootstrap fraction 0.500 (5 attempts a policy)"
    )


@pytest.mark.parametrize(("context", "number"), [(0, 0), (2, 0), (4, 0), (6, 0), (1, 1), (5, 1)])
def test_the_shortest_success_is_kept(ladder, context, number):
    path, succeeded = by_hand(context, (3, number))
    steps = len(path) - 1
    assert ladder.sources.steps[context] == steps
    assert ladder.sources.succeeded[number][context] == succeeded
    # Nearest the fractions of the time to success, among the states before it; of two as near, the earlier.
    nearest = [min(range(steps), key=lambda t: abs(t / steps - f)) for f in (0, 0.25, 0.5, 0.75, 0.9)]
    assert positions(ladder, context) == [path[t] for t in nearest]


def test_a_given_trajectory_is_used_as_it_is(ladder):
    assert ladder.sources.steps[3] == 7
    # Seven steps straight to 7: t / 7 nearest .25 is 2 (.29), .75 is 5 (.71), .9 is 6 (.86); 3 and 4 (.43 and .57) are
    # as near to .5 but for rounding, which favours 4.
    assert positions(ladder, 3) == [0, 2, 4, 5, 6]


def test_level_0_is_exactly_the_target_start(ladder):
    env = corridor()
    env.reset()
    for x in (0, 1):
        reset_to(env, x, 0)
        assert ladder.cells[x][0] == (codec_for(env).get_state(env),)


def test_equal_seeds_equal_ladders():
    def build(seed):
        return Ladder.from_policy(corridor(), mostly_right, reset_to, 4, seed=seed)

    assert build(0).sha256 == build(0).sha256 != build(1).sha256
    assert build(0).sources == build(0).sources
    assert build(0).sources.bootstrap_fraction == 0


def test_saved_with_its_sources(ladder, tmp_path):
    sha256 = ladder.save(tmp_path / "l.npz")
    loaded = Ladder.load(tmp_path / "l.npz", sha256)
    assert loaded.sources == ladder.sources
    assert loaded.sha256 == ladder.sha256


def test_a_context_that_nobody_solves_is_named():
    with pytest.raises(ValueError, match="context 2: no policy succeeds in 5 attempts of 1000 steps"):
        Ladder.from_policy(corridor(), only({0, 1}, mostly_right), reset_to, 3)
    with pytest.raises(ValueError, match="2 trajectories for 3 contexts"):
        Ladder.from_policy(corridor(), mostly_right, reset_to, 3, trajectories=demonstrations(2))
    with pytest.raises(ValueError, match="3 contexts, 0 attempts and 1000 steps: each must be at least 1"):
        Ladder.from_policy(corridor(), mostly_right, reset_to, 3, attempts=0)


def test_an_episode_is_cut_at_the_horizon():
    with pytest.raises(ValueError, match="context 0: no policy succeeds in 5 attempts of 3 steps"):
        Ladder.from_policy(corridor(), mostly_right, reset_to, 1, horizon=3)


class Forgetful(DeepcopyCodec):
    """Restores all but the flag, which comes a step nearer each time."""

    def set_state(self, env, state):
        nearer = getattr(self, "nearer", 0)
        self.nearer = nearer + 1
        start = super().set_state(env, state)
        env.unwrapped.flag -= nearer
        return start


def test_a_codec_that_does_not_restore_is_found_out():
    with pytest.raises(ValueError, match=r"a success at step 3 was replayed .* another episode at step 2"):
        Ladder.from_policy(corridor(), lambda o, g: 1, reset_to, 1, codec=Forgetful(), attempts=2)
