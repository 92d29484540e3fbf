"""Success is read in one way: by the Recorder, ladders, their validation and the curriculum's wrapper."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.integrations.gymnasium import SUCCESS, Assignments, CurriculumEnv
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.recorder import Recorder, Trajectory
from scout_rl.ladders.success import binary, success_reader
from scout_rl.ladders.validate import validate
from tests.ladders.trajectories import drawn


class Said(gym.Env):
    """Three steps to the end; ``says(step)`` is in the info as ``won``."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (1,))

    def __init__(self, says=lambda step: step == 3) -> None:
        self.says = says

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._get_obs(), {}

    def _get_obs(self):
        return np.array([float(self.at)])

    def step(self, action):
        self.at += 1
        return self._get_obs(), float(self.at == 3), self.at == 3, False, {"won": self.says(self.at)}


def put(env, context, level):
    env.reset()
    env.unwrapped.at = level
    return env.unwrapped._get_obs(), {}


def play(env):
    env.reset(seed=0)
    done = False
    while not done:
        *_, terminated, truncated, info = env.step(np.zeros(1, np.float32))
        done = terminated or truncated
    return info


def recorded(env, success):
    recorder = Recorder(env, success=success)
    play(recorder)
    return recorder.trajectories[0].first_success is not None


def in_a_curriculum(env, success):
    assignments = Assignments(Curriculum(rules.Scout(), 1, 2, window=1))
    return play(CurriculumEnv(env, assignments, put, success))[SUCCESS]


def from_policy(env, success):
    policy = lambda observation, generator: np.zeros(1, np.float32)  # noqa: E731
    ladder = Ladder.from_policy(env, policy, put, 1, success=success, horizon=5, attempts=1)
    return ladder.sources.steps == (3,)


def validated(env, success):
    """The start at level 0 is one step from the end: doing nothing would succeed."""
    env.reset(seed=0)
    ladder = Ladder.from_function(env, lambda env, context, level: put(env, context, 2), 1, 2)
    return not validate(ladder, env, success=success).ok


READERS = [recorded, in_a_curriculum, from_policy, validated]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [np.nan, 0.3, 2, "yes", np.array([1, 1])])
def test_what_is_neither_is_refused_in_one_sentence(read, value):
    env = Said(lambda step: value)
    if isinstance(value, np.ndarray) and read is in_a_curriculum:
        pytest.skip("NumPy itself refuses the truth of a batch there")
    with pytest.raises(ValueError, match=r"^info\['won'\] is .*, but success must be boolean or 0/1$"):
        read(env, "won")


@pytest.mark.parametrize("read", [recorded, in_a_curriculum, from_policy])
def test_a_function_that_returns_neither_is_refused(read):
    with pytest.raises(ValueError, match=r"^the success function returned nan, but success must be boolean or 0/1$"):
        read(Said(), lambda *step: float("nan"))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("yes", [True, 1, 1.0, np.True_, np.float32(1), np.array([1])])
def test_yes_is_yes_by_key(read, yes):
    assert read(Said(lambda step: yes if step == 3 else 0), "won")


@pytest.mark.parametrize("read", [recorded, in_a_curriculum, from_policy])
def test_the_documented_function_is_taken_everywhere(read):
    assert read(Said(), lambda observation, reward, terminated, truncated, info: terminated and reward > 0)


def test_a_function_sees_the_start_that_is_validated():
    observed = []

    def success(observation, reward, terminated, truncated, info):
        observed.append((observation.tolist(), reward, terminated, truncated, info))
        return observation[0] == 2

    assert validated(Said(), success)
    assert observed == [([2.0], 0.0, False, False, {})]


@pytest.mark.parametrize("read", [recorded, in_a_curriculum, from_policy])
def test_a_step_may_say_nothing(read):
    """The info of many environments has the key at the end of an episode only."""
    assert read(Said(lambda step: True if step == 3 else None), lambda *step: step[-1]["won"])


@pytest.mark.parametrize("read", READERS)
def test_a_function_of_four_is_refused_before_anything_is_played(read):
    env = Said()
    sentence = (
        r"^the success function takes \(observation, reward, terminated, info\), "
        r"but is called with \(observation, reward, terminated, truncated, info\)$"
    )
    with pytest.raises(ValueError, match=sentence):
        read(env, lambda observation, reward, terminated, info: True)
    with pytest.raises(ValueError, match="success is 3, but must be an info key or a function"):
        read(env, 3)


def test_functions_without_a_signature_are_called():
    assert success_reader(max, Said())(0, 0.0, False, False, 1)  # as odd as it is


def test_not_a_number_makes_no_demonstration():
    with pytest.raises(ValueError, match=r"success\[1\] is .*nan.*, but success must be boolean or 0/1"):
        Trajectory(drawn(range(3), success_at=2).states, np.zeros(2), np.zeros(2), np.array([0, np.nan]))
    assert binary(np.float64(0), "x") is False
