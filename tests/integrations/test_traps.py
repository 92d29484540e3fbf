"""Where peers go wrong, and what a user can get wrong: each as a test of the wrapper."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from scout_rl import Curriculum, rules
from scout_rl.integrations.gymnasium import CONTEXT, LEVEL, SUCCESS, Assignments, CurriculumEnv, TargetEnv
from tests.integrations.probes import CONTEXTS, MakeProbe, Probe, Spy, reset_to, truth


class Scripted(gym.Env):
    """Plays a list of (terminated, truncated, info) for every episode."""

    observation_space = gym.spaces.Box(-1, 10, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, script):
        self.script, self.t, self.options = script, 0, None

    def reset(self, *, seed=None, options=None):
        self.t, self.options = 0, options
        return np.array([options["context"], options["level"]], float) if options else np.full(2, -1.0), {}

    def step(self, action):
        terminated, truncated, info = self.script[self.t]
        self.t += 1
        return np.zeros(2), 0.0, terminated, truncated, dict(info)


def play(script, success="is_success", episodes=1):
    curriculum = Spy()
    env = CurriculumEnv(Scripted(script), Assignments(curriculum), reset_to, success)
    for _ in range(episodes):
        env.reset()
        done = False
        while not done:
            _, _, terminated, truncated, info = env.step(0)
            done = terminated or truncated
    return curriculum, info


NO, YES = {"is_success": False}, {"is_success": True}


def test_the_start_survives_an_autoreset_without_options():
    """Gymnasium and SB3 call reset() with no options after an episode; the cell must not depend on them."""
    assignments = Assignments(Spy())
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        envs = SyncVectorEnv([MakeProbe(assignments, end=1.0)] * 2, autoreset_mode=mode)
        envs.reset()
        for _ in range(6):
            observations, *_ = envs.step(np.zeros(2, int))
            for i in range(2):
                context, level, _ = truth(observations, i)
                assert context >= 0
                assert level >= 0


def test_options_and_seed_reach_the_environment_and_do_not_replace_the_cell():
    env = CurriculumEnv(Probe(), Assignments(Spy()), reset_to, "is_success")
    observation, info = env.reset(seed=3, options={"context": 99, "level": 99})
    assert truth(observation)[:2] == (info[CONTEXT], info[LEVEL])
    assert info[CONTEXT] < CONTEXTS
    first = env.unwrapped.np_random.random()
    env.reset(seed=3)
    assert env.unwrapped.np_random.random() == first


def test_a_time_out_is_no_success():
    curriculum, info = play([(False, False, NO), (False, True, NO)])
    assert [s for *_, s in curriculum.recorded] == [False]
    assert info[SUCCESS] is False


def test_a_termination_is_no_success_by_itself():
    curriculum, _ = play([(True, False, NO)])
    assert [s for *_, s in curriculum.recorded] == [False]


def test_success_once_at_any_step_counts_even_if_the_episode_then_times_out():
    curriculum, _ = play([(False, False, NO), (False, False, YES), (False, True, NO)], episodes=2)
    assert [s for *_, s in curriculum.recorded] == [True, True]


def test_success_does_not_leak_into_the_next_episode():
    script = [(False, False, YES), (True, False, NO)]
    env_script = Scripted(script)
    curriculum = Spy()
    env = CurriculumEnv(env_script, Assignments(curriculum), reset_to, "is_success")
    env.reset()
    env.step(0)
    env.reset()  # abandoned after its success: counts for nothing
    env_script.script = [(True, False, NO)]
    env.step(0)
    assert [s for *_, s in curriculum.recorded] == [False]


def test_a_missing_key_is_an_error_at_the_first_end_and_names_what_there_is():
    with pytest.raises(ValueError, match=r"success key 'is_success'.*'distance'.*lambda"):
        play([(False, False, {}), (True, False, {"distance": 0.1})])


def test_a_key_that_only_the_last_step_has_is_enough():
    curriculum, _ = play([(False, False, {}), (True, False, {"is_success": 1.0})])
    assert [s for *_, s in curriculum.recorded] == [True]


@pytest.mark.parametrize("value", [0.3, float("nan"), 2, "yes", np.array([1, 1])])
def test_success_that_is_not_binary_is_an_error(value):
    with pytest.raises(ValueError, match=r"is_success|ambiguous"):
        play([(True, False, {"is_success": value})])


def test_a_function_sees_the_whole_step():
    seen = []

    def success(observation, reward, terminated, truncated, info):
        seen.append((reward, terminated, truncated, sorted(info)))
        return terminated and not truncated

    curriculum, _ = play([(False, False, {}), (True, False, {"a": 1})], success)
    assert seen == [(0.0, False, False, []), (0.0, True, False, ["a"])]
    assert [s for *_, s in curriculum.recorded] == [True]


def test_a_function_that_says_nothing_is_an_error():
    with pytest.raises(ValueError, match="returned None"):
        play([(True, False, {})], success=lambda *step: None)


def test_an_outcome_that_comes_after_its_frontier_moved_counts_for_its_own_cell():
    """Two environments start at the easiest level; one finishes after the frontier has moved on."""
    curriculum = Curriculum(rules.Scout(n_min=1, hysteresis=1, tau_high=0.19), 1, 5, window=1)
    assignments = Assignments(curriculum)
    slow, fast = (CurriculumEnv(Scripted([(True, False, YES)]), assignments, reset_to, "is_success") for _ in "ab")
    _, info = slow.reset()
    assert info[LEVEL] == 4
    fast.reset()
    fast.step(0)
    assert curriculum.frontier.tolist() == [3]
    evidence = curriculum.state.statistics.evidence.copy()
    *_, info = slow.step(0)
    assert info[LEVEL] == 4
    moved = curriculum.state.statistics.evidence - evidence
    assert moved.tolist() == [[0, 0, 0, 0, 1]]


def test_the_outcome_is_in_before_the_next_cell_is_drawn():
    """Syllabus draws the next task before it applies the outcome: stale by an episode. Here the draw comes after."""
    curriculum = Curriculum(rules.Scout(n_min=1, hysteresis=1, tau_high=0.19, cooldown=0), 1, 5, window=1)
    env = CurriculumEnv(Scripted([(True, False, YES)]), Assignments(curriculum), reset_to, "is_success")
    levels = []
    for _ in range(5):
        levels.append(env.reset()[1][LEVEL])
        env.step(0)
    assert levels == [4, 3, 2, 1, 0]


def test_steps_past_the_end_are_not_counted_again():
    curriculum = Spy()
    env = CurriculumEnv(Scripted([(True, False, YES)] * 3), Assignments(curriculum), reset_to, "is_success")
    env.reset()
    for _ in range(3):
        env.step(0)
    assert len(curriculum.recorded) == 1


def test_the_evaluation_environment_is_at_level_0_only_and_moves_nothing():
    env = TargetEnv(Probe(end=1.0), reset_to, contexts=[4, 2], success="is_success")
    starts = []
    for _ in range(5):
        observation, info = env.reset()
        starts.append(truth(observation)[:2])
        assert (info[CONTEXT], info[LEVEL]) == starts[-1]
        assert SUCCESS in env.step(0)[4]
    assert starts == [(4, 0), (2, 0), (4, 0), (2, 0), (4, 0)]
    env.scout_rewind()
    assert truth(env.reset()[0])[:2] == (4, 0)


def test_wrong_arguments_say_what_is_wrong():
    curriculum = Spy()
    with pytest.raises(ValueError, match=r"one Assignments\(curriculum\)"):
        CurriculumEnv(Probe(), curriculum, reset_to, "is_success")
    with pytest.raises(ValueError, match="Assignments takes a Curriculum"):
        Assignments(rules.Scout())
    with pytest.raises(ValueError, match="reset_to is of type int, but must be a Ladder or a function"):
        CurriculumEnv(Probe(), Assignments(curriculum), 3, "is_success")
    with pytest.raises(ValueError, match="success is 3"):
        CurriculumEnv(Probe(), Assignments(curriculum), reset_to, 3)
    with pytest.raises(ValueError, match="no contexts"):
        TargetEnv(Probe(), reset_to, [], "is_success")
    env = CurriculumEnv(Probe(), Assignments(curriculum), lambda *cell: np.zeros(4), "is_success")
    with pytest.raises(ValueError, match=r"\(observation, info\)"):
        env.reset()


@pytest.mark.parametrize(
    ("rule", "name"), [(rules.Plr(), "plr"), (rules.Scout(lambda_u=0.5), "scout with lambda_u 0.5")]
)
def test_a_rule_that_needs_a_signal_is_refused_at_once(rule, name):
    """No signal can come out of an environment; such a run used to die at its first finished episode."""
    curriculum = Curriculum(rule, CONTEXTS, 5)
    sentence = rf"^rule {name} needs the learner's signal .* curriculum\.report\(cells, success, signal\)"
    with pytest.raises(ValueError, match=sentence):
        CurriculumEnv(Probe(), Assignments(curriculum), reset_to, "is_success")
