"""Episodes that are cut short from outside: only successes would count, so the user is told, and told once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from scout_rl.integrations.gymnasium import Assignments, CurriculumEnv
from scout_rl.integrations.vector import CurriculumVectorEnv
from tests.integrations.probes import MakeProbe, Probe, Spy, reset_to

N, LIMIT = 4, 5
OUTSIDE = r"a TimeLimit or another wrapper that ends episodes is likely outside CurriculumEnv and belongs inside it"


class Seeker(Probe):
    """Ends when it succeeds, and never otherwise."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, info["is_success"], False, info


class Outside(MakeProbe):
    """The mistake: the limit cuts episodes whose end the wrapper does not see."""

    def __call__(self):
        return TimeLimit(super().__call__(), LIMIT)


class Inside(MakeProbe):
    def __call__(self):
        env = TimeLimit(self.kind(**self.kwargs), LIMIT)
        return CurriculumEnv(env, self.assignments, reset_to, success="is_success")


def run(make, mode, steps=200):
    """Train on nothing; return the assignments and the warnings."""
    assignments = Assignments(Spy())
    envs = SyncVectorEnv([make(assignments, Seeker, hit=0.05)] * N, autoreset_mode=mode)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        envs.reset(seed=0)
        for _ in range(steps):
            *_, terminated, truncated, _ = envs.step(np.zeros(N, int))
            done = terminated | truncated
            if mode is AutoresetMode.DISABLED and done.any():
                envs.reset(options={"reset_mask": done})
        envs.close()
    return assignments, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_time_limit_outside_is_warned_of_once_and_inside_it_is_not(mode):
    assignments, caught = run(Outside, mode)
    assert assignments.dropped > 2 * assignments.finished > 0
    assert (assignments.successes == assignments.outcomes).all(), "the failures are missing"
    (sentence,) = caught
    assert sentence.endswith("CurriculumEnv(TimeLimit(env, ...), ...)")
    assert "TimeLimit or another wrapper that ends episodes is likely outside CurriculumEnv" in sentence
    assert " of 2" in sentence, "it comes early, after about twenty episodes"

    assignments, caught = run(Inside, mode)
    assert assignments.finished > 100
    assert assignments.dropped <= N, "closing gives up what was under way"
    assert caught == []


@pytest.fixture
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.mark.usefixtures("no_warning")
def test_looking_at_starts_is_no_mistake():
    assignments = Assignments(Spy())
    env = CurriculumEnv(Probe(end=0), assignments, reset_to, "is_success")
    for _ in range(100):
        env.reset()
    assert assignments.dropped == 99


@pytest.mark.usefixtures("no_warning")
@pytest.mark.parametrize("how", [{"seed": 3}, {"options": {"context": 0}}])
def test_a_reset_with_a_seed_or_options_is_someone_s_wish(how):
    assignments = Assignments(Spy())
    env = CurriculumEnv(Probe(end=0), assignments, reset_to, "is_success")
    for _ in range(100):
        env.reset(**how)
        env.step(0)
    assert assignments.dropped == 99


@pytest.mark.usefixtures("no_warning")
def test_a_few_resets_of_many_environments_and_the_end_of_training_are_no_mistake():
    assignments = Assignments(Spy())
    envs = SyncVectorEnv([MakeProbe(assignments, end=0)] * 50)
    for _ in range(3):
        envs.reset()
        envs.step(np.zeros(50, int))
    envs.close()
    assert assignments.dropped == 150


@pytest.mark.usefixtures("no_warning")
def test_resets_between_many_finished_episodes_are_no_mistake():
    assignments = Assignments(Spy())
    envs = SyncVectorEnv([MakeProbe(assignments)] * N, autoreset_mode=AutoresetMode.SAME_STEP)
    for _ in range(100):
        envs.reset()
        for _ in range(10):
            envs.step(np.zeros(N, int))
    assert assignments.finished > assignments.dropped > 300


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_in_processes_it_is_an_error_with_the_same_hint(mode):
    assignments = Assignments(Spy())
    inner = AsyncVectorEnv([Outside(assignments, Seeker, hit=0)] * 2, autoreset_mode=mode)
    envs = CurriculumVectorEnv(inner, assignments)
    envs.reset(seed=0)
    for _ in range(LIMIT - 1):
        envs.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match=OUTSIDE):
        envs.step(np.zeros(2, int))
    envs.close()


def test_in_sb3_s_processes_too():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import SubprocVecEnv

    from scout_rl.integrations.sb3 import CurriculumVecEnv

    assignments = Assignments(Spy())
    inner = SubprocVecEnv([Outside(assignments, Seeker, hit=0)] * 2, start_method="fork")
    env = CurriculumVecEnv(inner, assignments)
    env.reset()
    for _ in range(LIMIT - 1):
        env.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match=OUTSIDE):
        env.step(np.zeros(2, int))
    env.close()


def test_in_an_evaluation_too():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from scout_rl.integrations.gymnasium import TargetEnv
    from scout_rl.integrations.sb3 import evaluate

    class Model:
        def predict(self, observation, deterministic):
            return np.zeros(1, int), None

    env = DummyVecEnv([lambda: TimeLimit(TargetEnv(Seeker(hit=0), reset_to, [0], "is_success"), LIMIT)])
    with pytest.raises(RuntimeError, match="is likely outside TargetEnv and belongs inside it"):
        evaluate(Model(), env)
