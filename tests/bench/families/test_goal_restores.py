"""Restores are exact: against each other, in another process, in another order, with another number of threads."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from scout_rl.bench.families import family
from scout_rl.bench.families.fetch.simulator import Simulator
from scout_rl.bench.settings.settings import SETTINGS
from tests.bench.families.goal_families import flat, play, random_actions, simulator_of

KEYS = ["fetch-conflict", "pointmaze-medium"]
STEPS = 25


def cells(ladder_of, key):
    starts = flat(ladder_of(key)[1])
    return {name: array[::3] for name, array in starts.items()}


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("key", KEYS)
def test_two_rollouts_from_one_cell_are_bit_equal_in_any_order(ladder_of, key):
    simulator, starts = simulator_of(key), cells(ladder_of, key)
    n = len(starts["goal"])
    actions = random_actions(simulator, n, seed=3, n_steps=STEPS)
    once = play(simulator, starts, actions)
    assert same(once, play(simulator, starts, actions))
    order = np.random.default_rng(0).permutation(n)
    mixed = play(simulator, {name: array[order] for name, array in starts.items()}, actions[:, order])
    assert same(mixed, [part[:, order] for part in once])
    alone = play(simulator, {name: array[:1] for name, array in starts.items()}, actions[:, :1])
    assert same(alone, [part[:, :1] for part in once])


def test_the_number_of_threads_does_not_matter(ladder_of):
    starts = cells(ladder_of, "fetch-conflict")
    actions = random_actions(simulator_of("fetch-conflict"), len(starts["goal"]), seed=4, n_steps=10)
    expected = play(Simulator(n_threads=1), starts, actions)
    for n_threads in (2, 3):
        assert same(play(Simulator(n_threads=n_threads), starts, actions), expected)


PROGRAM = """
import hashlib, sys
from scout_rl.bench.families import family, load_bank
from scout_rl.bench.settings.settings import SETTINGS
from tests.bench.families.test_goal_restores import fingerprint
key = sys.argv[1]
print(fingerprint(key))
"""


def fingerprint(key):
    """A hash of a ladder, built here, and of episodes from its cells."""
    bench_family, setting = family(SETTINGS[key].family), SETTINGS[f"{key}-small"]
    contexts = {name: array[-3:] for name, array in bench_family.sample_bank(setting).train.contexts.items()}
    starts = flat(bench_family.starts(contexts, 5))
    simulator = bench_family.batch_simulator(setting)
    played = play(simulator, starts, random_actions(simulator, len(starts["goal"]), seed=5, n_steps=STEPS))
    return hashlib.sha256(b"".join(a.tobytes() for a in (*starts.values(), *played))).hexdigest()


@pytest.mark.parametrize("key", KEYS)
def test_another_process_builds_and_plays_the_same(key):
    done = subprocess.run([sys.executable, "-c", PROGRAM, key], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == fingerprint(key)


@pytest.mark.parametrize("key", KEYS)
def test_an_episode_continues_exactly_where_it_was_cut(ladder_of, key):
    """Also between steps, where MuJoCo's derived quantities are one substep behind."""
    simulator, starts = simulator_of(key), cells(ladder_of, key)
    actions = random_actions(simulator, len(starts["goal"]), seed=6, n_steps=12)
    whole = simulator.reset_to(starts)
    for action in actions[:6]:
        whole, _ = simulator.step(whole, action)
    cut = simulator.reset_to(simulator.get_states(whole))
    for action in actions[6:]:
        whole, expected = simulator.step(whole, action)
        cut, restored = simulator.step(cut, action)
        for name, array in expected.observation.items():
            np.testing.assert_array_equal(restored.observation[name], array)
    for name, array in simulator.get_states(whole).items():
        np.testing.assert_array_equal(simulator.get_states(cut)[name], array, err_msg=name)


@pytest.mark.parametrize("key", [*KEYS, "metaworld-conflict"])
def test_an_evaluation_plays_no_further_than_a_success_and_the_outcomes_are_the_same(ladder_of, key, monkeypatch):
    """Against whole episodes of all: equal outcomes, equal observations of whoever still plays, fewer steps."""
    from scout_rl.bench.rollouts.host import rows, succeeds

    simulator, starts = simulator_of(key), cells(ladder_of, key)
    n = len(starts["goal"])
    actions = random_actions(simulator, n, seed=9, n_steps=40)
    seen, success, resting = [], np.zeros(n, bool), []
    handle = simulator.reset_to(starts)
    if key == "metaworld-conflict":  # towards the goal, gripper closed: who starts near it with the object succeeds
        first = simulator.observe(handle)
        actions[..., :3] = (10 * (first["desired_goal"] - first["achieved_goal"])).clip(-1, 1)
        actions[..., 3] = 1.0
    for action in actions:
        seen.append(rows(simulator.observe(handle)))
        resting.append(success.copy())
        handle, result = simulator.step(handle, action)
        success |= result.success
    assert 0 < success.sum() < n

    def act(t, now):
        np.testing.assert_array_equal(now[~resting[t]], seen[t][~resting[t]])
        return actions[t]

    asleep, rest = [], simulator.rest
    monkeypatch.setattr(simulator, "rest", lambda state, which: (asleep.append(which.sum()), rest(state, which)))
    monkeypatch.setattr(simulator, "max_steps", len(actions))
    np.testing.assert_array_equal(succeeds(simulator, act, starts), success)
    assert asleep[-1] == success.sum()
    monkeypatch.undo()
    again = simulator.reset_to(starts)  # whoever rested plays again after the next reset
    again, _ = simulator.step(again, actions[0])
    np.testing.assert_array_equal(rows(simulator.observe(again)), seen[1])


@pytest.mark.parametrize("key", [*KEYS, "metaworld-conflict"])
def test_who_rests_is_not_simulated(ladder_of, key):
    simulator, starts = simulator_of(key), cells(ladder_of, key)
    n = len(starts["goal"])
    actions, handle, whole = random_actions(simulator, n, 4, n_steps=6), *(simulator.reset_to(starts) for _ in "ab")
    resting = np.arange(n) % 3 == 0
    simulator.rest(handle, resting)
    before = simulator.get_states(handle)
    for action in actions:
        handle, _ = simulator.step(handle, action)
        whole, _ = simulator.step(whole, action)
    after, expected = simulator.get_states(handle), simulator.get_states(whole)
    for name in ("time", "qpos", "qvel"):
        np.testing.assert_array_equal(after[name][resting], before[name][resting], err_msg=name)
        np.testing.assert_array_equal(after[name][~resting], expected[name][~resting], err_msg=name)
    assert (expected["time"] > before["time"]).all()


def test_an_error_in_a_thread_reaches_the_caller():
    from scout_rl.bench.families.worker_threads import WorkerThreads

    threads, observations = WorkerThreads(3), []

    def work(i):
        observations.append(i)
        if i == 5:
            raise ValueError("environment 5")

    with pytest.raises(ValueError, match="environment 5"):
        threads.each(work, 8)
    observations.clear()
    threads.each(observations.append, 8)
    assert sorted(observations) == list(range(8))
    with pytest.raises(ValueError, match="at least one thread"):
        WorkerThreads(0)


def test_batches_are_used_again(ladder_of):
    """A handle that nobody holds gives its environments back: a window of training makes no new ones."""
    simulator, starts = simulator_of("fetch-conflict"), cells(ladder_of, "fetch-conflict")
    first = simulator.reset_to(starts)
    data = first.batch.data[0]
    second = simulator.reset_to(starts)
    assert second.batch.data[0] is not data, "two live handles share nothing"
    del first
    third = simulator.reset_to(starts)
    assert third.batch.data[0] is data
