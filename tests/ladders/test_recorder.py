"""Trajectories: recorded, saved, exported to Minari and read back, with and without states."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import gymnasium_robotics
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from scout_rl.codecs import codec_for
from scout_rl.ladders.minari import from_minari, to_minari
from scout_rl.ladders.recorder import Recorder, Trajectory
from tests.ladders.trajectories import drawn

gym.register_envs(gymnasium_robotics)


def reach(seed: int) -> tuple[gym.Env, Trajectory]:
    """The hand goes straight to the goal of FetchReach."""
    env = gym.make("FetchReach-v4", max_episode_steps=12)
    recorder = Recorder(env, observations=True)
    observation, _ = recorder.reset(seed=seed)
    done = False
    while not done:
        action = np.zeros(4, dtype=np.float32)
        action[:3] = np.clip(10 * (observation["desired_goal"] - observation["achieved_goal"]), -1, 1)
        observation, _, terminated, truncated, _ = recorder.step(action)
        done = terminated or truncated
    (trajectory,) = recorder.trajectories
    return env, trajectory


@pytest.fixture(scope="module")
def reached():
    return reach(seed=7)


def test_what_is_recorded(reached):
    _, trajectory = reached
    assert len(trajectory) == 12
    assert len(trajectory.states) == 13
    assert trajectory.actions.shape == (12, 4)
    assert trajectory.achieved.shape == (13, 3)
    assert trajectory.seed == 7
    assert trajectory.truncated
    assert not trajectory.terminated
    assert trajectory.first_success is not None
    assert trajectory.success[trajectory.first_success - 1]
    assert not trajectory.success[: trajectory.first_success - 1].any()
    np.testing.assert_array_equal(trajectory.observations["achieved_goal"], trajectory.achieved)
    np.testing.assert_array_equal(trajectory.desired, trajectory.observations["desired_goal"][0])


def test_a_recorded_state_continues_as_recorded(reached):
    env, trajectory = reached
    codec = codec_for(env)
    codec.set_state(env, trajectory.states[4])
    for t in range(4, 8):
        observation, *_ = env.step(trajectory.actions[t])
        np.testing.assert_allclose(observation["achieved_goal"], trajectory.achieved[t + 1], atol=2e-3)


def test_restored_episodes_are_recorded_too(reached):
    env, trajectory = reached
    recorder = Recorder(env)
    recorder.codec.set_state(recorder, trajectory.states[5])
    recorder.step(trajectory.actions[5])
    again = recorder.finish()
    assert again.states[0] == trajectory.states[5]
    assert again.seed is None


def same(a: Trajectory, b: Trajectory) -> None:
    for field in dataclasses.fields(Trajectory):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if field.name == "observations":
            assert left.keys() == right.keys()
            for name in left:
                np.testing.assert_array_equal(left[name], right[name])
        elif isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right)
        else:
            assert left == right


def test_npz_round_trip_and_corruption(reached, tmp_path):
    _, trajectory = reached
    path = tmp_path / "t.npz"
    trajectory.save(path)
    same(Trajectory.load(path), trajectory)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is damaged"):
        Trajectory.load(path)
    trajectory.states[0].save(path)
    with pytest.raises(ValueError, match="holds no trajectory"):
        Trajectory.load(path)


def test_lengths_are_checked():
    trajectory = drawn(range(4), success_at=3)
    with pytest.raises(ValueError, match="success has 2 entries; the trajectory has 3 steps"):
        dataclasses.replace(trajectory, success=np.zeros(2, dtype=bool))
    with pytest.raises(ValueError, match="achieved has 3 entries; a trajectory of 3 steps has 4"):
        dataclasses.replace(trajectory, achieved=np.zeros((3, 1)))


def test_missing_success_is_an_error_and_a_function_will_do():
    recorder = Recorder(gym.make("CartPole-v1"))
    recorder.reset(seed=0)
    with pytest.raises(ValueError, match="info of CartPoleEnv has no 'is_success' or 'success'"):
        recorder.step(0)
    recorder = Recorder(
        TimeLimit(gym.make("CartPole-v1").unwrapped, 5),
        success=lambda observation, reward, terminated, truncated, info: abs(observation[0]) > 9,
        only_successes=True,
    )
    recorder.reset(seed=0)
    for _ in range(5):
        recorder.step(0)
    assert recorder.trajectories == []  # it ended without success
    assert recorder.finish().first_success is None
    assert recorder.trajectories == []


def test_finish_after_the_end_keeps_nothing_twice():
    recorder = Recorder(
        TimeLimit(gym.make("CartPole-v1").unwrapped, 5),
        success=lambda observation, reward, terminated, truncated, info: truncated,
    )
    with pytest.raises(ValueError, match="no step to keep"):
        recorder.finish()
    for seed in (0, 1):
        recorder.reset(seed=seed)
        with pytest.raises(ValueError, match="no step to keep"):
            recorder.finish()
        for _ in range(5):
            recorder.step(0)
        assert recorder.finish() is recorder.finish() is recorder.trajectories[-1]
        assert (recorder.trajectories[-1].seed, len(recorder.trajectories[-1])) == (seed, 5)
    assert len(recorder.trajectories) == 2
    with pytest.raises(ValueError, match="is finished: reset it"):
        recorder.step(0)


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def test_minari_out_and_in_with_states(reached, datasets):
    env, trajectory = reached
    dataset = to_minari([trajectory, trajectory], "scout/reach-v0", env, description="a test")
    assert dataset.total_episodes == 2
    first, second = from_minari("scout/reach-v0")
    same(first, trajectory)
    same(second, trajectory)
    assert [t.seed for t in from_minari(dataset, episodes=[1])] == [7]


def plain_dataset(env, trajectory, actions, name, seed=7):
    """A dataset as others make them: no states in the infos."""
    import minari
    from minari.data_collector import EpisodeBuffer

    ends = [False] * (len(actions) - 1) + [True]
    episode = EpisodeBuffer(
        id=0,
        seed=seed,
        observations=dict(trajectory.observations),
        actions=actions,
        rewards=list(trajectory.rewards),
        terminations=[False] * len(actions),
        truncations=ends,
        infos={},
    )
    return minari.create_dataset_from_buffers(name, [episode], env=env)


def test_minari_in_by_replay(reached, datasets):
    env, trajectory = reached
    dataset = plain_dataset(env, trajectory, trajectory.actions, "scout/plain-v0")
    (replayed,) = from_minari(dataset, env)
    assert replayed.states == trajectory.states
    assert replayed.first_success == trajectory.first_success


def test_minari_replays_that_fail_are_named(reached, datasets):
    env, trajectory = reached
    other = plain_dataset(env, trajectory, -trajectory.actions, "scout/other-v0")
    with pytest.raises(ValueError, match=r"episode 0: the replay shows another .* than was recorded"):
        from_minari(other, env)
    with pytest.raises(ValueError, match="episode 0: the replay of its 12 actions does not succeed"):
        from_minari(other, env, tolerance=np.inf)
    unseeded = plain_dataset(env, trajectory, trajectory.actions, "scout/unseeded-v0", seed=None)
    with pytest.raises(ValueError, match="episode 0 has neither states nor the seed"):
        from_minari(unseeded, env)


def test_minari_needs_observations(reached, datasets):
    env, trajectory = reached
    with pytest.raises(ValueError, match="record it with observations=True"):
        to_minari([dataclasses.replace(trajectory, observations={})], "scout/none-v0", env)
