"""The Meta-World batch simulator against the stock environments, and its restores against each other."""

import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from scout_rl.bench.families import family
from scout_rl.bench.families.metaworld import codec, script
from scout_rl.bench.families.metaworld.contexts import target_starts
from scout_rl.bench.families.metaworld.simulator import HORIZON, Simulator, stock_observation
from scout_rl.bench.families.metaworld.tasks import TASKS, stock, stock_env
from scout_rl.bench.settings.settings import SETTINGS
from tests.bench.families.stock_reward import stock_reward

BANKS = ("metaworld-pickplace", "metaworld-conflict")


@functools.cache
def stock_of(index):
    env = stock_env(TASKS[index].name)
    facts = stock(index)
    env._last_rand_vec = (facts.context_low + facts.context_high) / 2
    env.reset()
    return env


def some(contexts, n):
    """n contexts of each task of a bank."""
    rows = np.concatenate([np.flatnonzero(contexts["task"] == t)[:n] for t in np.unique(contexts["task"])])
    return {name: array[rows] for name, array in contexts.items()}


def cells(contexts, n_levels=5):
    """Every cell of a hand-built ladder, as states [contexts * levels, ...]."""
    ladder = family("metaworld").starts(contexts, n_levels)
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}


def one(states, i):
    return {name: array[i] for name, array in states.items()}


def play(states, n_steps, seed=0, n_threads=None):
    """Whole episodes under the scripted policy with noise, which touches, grasps, drops and leaves the workspace."""
    simulator = Simulator(HORIZON, n_threads)
    generator = np.random.default_rng(seed)
    handle = simulator.reset_to(states)
    first = simulator.observe(handle)
    seen, steps = first, []
    for t in range(n_steps):
        noise = generator.normal(0, 0.1 + 0.9 * (t % 50 > 40), (handle.n, 4))
        action = (script.act(handle.task, stock_observation(seen)) + noise).astype(np.float32)
        handle, result = simulator.step(handle, action)
        steps.append((action, result, stock_reward(handle, action) if t % 10 == 9 else None))
        seen = result.observation
    return first, steps


def check_parity(states, n_steps):
    first, steps = play(states, n_steps)
    n_success = 0
    for i in range(len(states["task"])):
        env = stock_of(int(states["task"][i]))
        np.testing.assert_array_equal(codec.restore_stock(env, one(states, i)), stock_observation(first)[i])
        for action, result, reward in steps:
            observation, shaped, terminated, _, info = env.step(action[i])
            np.testing.assert_array_equal(observation, stock_observation(result.observation)[i])
            assert bool(info["success"]) == result.success[i]
            assert result.reward[i] == info["success"] - 1
            assert not terminated
            assert not result.terminated[i]
            assert reward is None or reward[i] == shaped
            n_success += int(info["success"])
    assert 0 < n_success < len(steps) * len(states["task"])


@pytest.mark.parametrize("bank", BANKS)
def test_whole_episodes_from_every_level_equal_the_stock_environments(bank_of, bank):
    check_parity(cells(some(bank_of(bank).train.contexts, 1)), HORIZON)


@pytest.mark.slow
@pytest.mark.parametrize("bank", BANKS)
def test_whole_episodes_from_every_level_of_ten_contexts_equal_the_stock_environments(bank_of, bank):
    n = 10 // len(SETTINGS[bank].groups)
    check_parity(cells(some(bank_of(bank).train.contexts, n)), HORIZON)


def check_resets(contexts):
    starts = target_starts(contexts)
    for i, (index, vector) in enumerate(zip(contexts["task"], contexts["vector"], strict=True)):
        env = stock_of(int(index))
        env._last_rand_vec = np.array(vector)
        observation, _ = env.reset()
        for name, array in codec.read_stock(env).items():
            np.testing.assert_array_equal(array, starts[name][i], err_msg=f"context {i}: {name}")
        simulator = Simulator(HORIZON)
        seen = simulator.observe(simulator.reset_to({n: a[i : i + 1] for n, a in starts.items()}))
        np.testing.assert_array_equal(observation, stock_observation(seen)[0])


@pytest.mark.parametrize("bank", BANKS)
def test_level_0_is_what_the_stock_reset_leaves(bank_of, bank):
    check_resets(some(bank_of(bank).contexts, 3))


@pytest.mark.slow
@pytest.mark.parametrize("bank", BANKS)
def test_level_0_of_every_context_is_what_the_stock_reset_leaves(bank_of, bank):
    check_resets(bank_of(bank).contexts)


def test_the_stock_time_limit_is_the_stock_environments_own():
    assert stock_of(0).max_path_length == 500 > HORIZON


def test_the_view_for_relabelling_is_the_stock_one_with_its_goal_hidden(bank_of):
    states = target_starts(some(bank_of("metaworld-conflict").train.contexts, 1))
    simulator = Simulator(HORIZON)
    handle, result = simulator.step(simulator.reset_to(states), np.zeros((2, 4)))
    seen, observation = result.observation, stock_observation(result.observation)
    np.testing.assert_array_equal(seen["achieved_goal"], observation[:, 4:7])
    np.testing.assert_array_equal(seen["desired_goal"], observation[:, 36:39])
    np.testing.assert_array_equal(seen["observation"][:, :36], observation[:, :36])
    for index, task in enumerate(states["task"]):
        env = stock_of.__wrapped__(int(task))  # not the shared one: its observation space is changed here
        codec.restore_stock(env, one(states, index))
        env._partially_observable = True
        vars(env).pop("sawyer_observation_space", None)
        np.testing.assert_array_equal(seen["observation"][index], env.step(np.zeros(4))[0])
    assert not handle.step_count.any() or (handle.step_count == 1).all()


def digest(states):
    """A hash of every number that two short episodes from these states show."""
    first, steps = play(states, 25)
    found = hashlib.sha256()
    for seen in [first, *(result.observation for _, result, _ in steps)]:
        for name in sorted(seen):
            found.update(np.ascontiguousarray(seen[name]).tobytes())
    return found.hexdigest()


def test_two_rollouts_from_one_cell_are_bit_equal_in_one_process_and_across_two(bank_of, tmp_path):
    states = cells(some(bank_of("metaworld-conflict").train.contexts, 1))
    np.savez(tmp_path / "states.npz", **states)
    program = (
        "import sys, numpy as np\n"
        "from tests.bench.families.test_metaworld_parity import digest\n"
        "print(digest(dict(np.load(sys.argv[1]))))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "states.npz")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])},
    ).stdout.strip()
    assert digest(states) == digest(states) == other


def test_neither_the_order_of_environments_nor_the_number_of_threads_matters(bank_of):
    states = cells(some(bank_of("metaworld-conflict").train.contexts, 2))
    n = len(states["task"])
    order = np.random.default_rng(3).permutation(n)
    actions = np.random.default_rng(4).uniform(-1, 1, (20, n, 4)).astype(np.float32)

    def observations(rows, n_threads):
        simulator = Simulator(HORIZON, n_threads)
        handle = simulator.reset_to({name: array[rows] for name, array in states.items()})
        seen = []
        for action in actions:
            handle, result = simulator.step(handle, action[rows])
            seen.append(stock_observation(result.observation))
        return np.stack(seen, axis=1), simulator.get_states(handle)

    expected, final = observations(np.arange(n), 1)
    for n_threads in (1, 2, 3):
        got, got_final = observations(order, n_threads)
        np.testing.assert_array_equal(got, expected[order])
        for name, array in got_final.items():
            np.testing.assert_array_equal(array, final[name][order])


def test_float64_actions_are_computed_in_float64_as_in_the_stock_step(bank_of):
    states = target_starts(some(bank_of("metaworld-pickplace").train.contexts, 1))
    env = stock_of(0)
    codec.restore_stock(env, one(states, 0))
    simulator = Simulator(HORIZON)
    handle = simulator.reset_to(states)
    for action in np.random.default_rng(5).uniform(-1, 1, (10, 4)):
        handle, result = simulator.step(handle, action[None])
        np.testing.assert_array_equal(env.step(action)[0], stock_observation(result.observation)[0])


def test_pads_touch_is_the_stock_test(bank_of):
    states = cells(some(bank_of("metaworld-conflict").train.contexts, 1))
    simulator = Simulator(HORIZON)
    handle = simulator.reset_to(states)
    for _ in range(3):
        handle, _ = simulator.step(handle, np.tile([0, 0, 0, 1.0], (handle.n, 1)))
        touch = simulator.pads_touch(handle)
        for i, environment in enumerate(handle.environments):
            env = stock_of(environment.index)
            mine, env.data = env.data, environment.data
            try:
                assert touch[i] == bool(env.touching_main_object)
            finally:
                env.data = mine
    assert set(touch) == {True, False}


def test_the_physics_names_are_all_that_a_step_depends_on(bank_of):
    """What is left out of a state (applied forces) is zero after a stock episode."""
    env = stock_of(1)
    codec.restore_stock(env, one(target_starts(some(bank_of("metaworld-conflict").contexts, 1)), 0))
    for _ in range(5):
        env.step(np.ones(4, dtype=np.float32))
    assert not env.data.qfrc_applied.any()
    assert not env.data.xfrc_applied.any()
    assert env.data.eq_active.all()
    assert env.model.na == env.model.nuserdata == env.model.npluginstate == 0
    assert mujoco.mj_stateSize(env.model, codec.layout().bits) == codec.layout().size
