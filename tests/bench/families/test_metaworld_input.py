"""Bad input to the Meta-World family: one sentence each."""

import dataclasses

import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.metaworld import codec
from scout_rl.bench.families.metaworld.contexts import target_starts
from scout_rl.bench.families.metaworld.simulator import HORIZON, Simulator
from scout_rl.bench.families.metaworld.solver import solved
from scout_rl.bench.families.metaworld.tasks import stock_env, task_index
from scout_rl.bench.settings.bank import require_hash
from scout_rl.bench.settings.settings import SETTINGS

GOOD = [0.0, 0.65, 0.02, 0.0, 0.85, 0.2]


def contexts(vector, task=0):
    return {"task": np.array([task], dtype=np.int32), "vector": np.array([vector])}


@pytest.fixture(scope="module")
def start():
    return target_starts(contexts(GOOD))


@pytest.mark.parametrize(
    ("vector", "task", "sentence"),
    [
        ([0.3, *GOOD[1:]], 0, r"context 0: object x is 0.3, outside the -0.1 to 0.1 of pick-place-v3"),
        ([*GOOD[:5], 0.9], 0, r"context 0: goal z is 0.9, outside the 0.05 to 0.3 of pick-place-v3"),
        ([float("nan"), *GOOD[1:]], 0, "context 0: object x is nan, outside"),
        (GOOD, 2, r"context 0: object y is 0.65, outside the 0.5 to 0.6 of shelf-place-v3"),
        ([0, 0.7, 0.02, 0, 0.8, 0.2], 0, r"object and goal are 0.100 m apart, and pick-place-v3 needs 0.15 m"),
        (GOOD, 7, "context 0: its task is 7, and there are 3 tasks"),
    ],
)
def test_contexts_that_the_stock_task_cannot_draw(vector, task, sentence):
    with pytest.raises(ValueError, match=sentence):
        family("metaworld").starts(contexts(vector, task), 5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mujoco_version": np.array([[3, 2, 1]])}, r"written with MuJoCo 3.2.1, and MuJoCo .* build the ladder again"),
        ({"model_fingerprint": np.zeros((1, 16), np.uint8)}, "belongs to another MuJoCo model"),
        ({"task": np.array([1], np.int32)}, None),
        ({"task": np.array([-1], np.int32)}, "a state's task is -1, and there are 3 tasks"),
        ({"qpos": np.zeros((1, 15))}, r"array 'qpos' of 1 states has shape \(1, 15\), and not \(1, 16\)"),
        ({"task": np.array(0)}, r"with a leading axis; 'task' has shape \(\)"),
    ],
)
def test_states_that_cannot_be_restored(start, change, sentence):
    states = {**start, **change}
    if sentence is None:  # push and pick-place differ in a site's place and colour alone: one model, two tasks
        Simulator(HORIZON).reset_to(states)
        return
    with pytest.raises(ValueError, match=sentence):
        Simulator(HORIZON).reset_to(states)


def test_a_state_of_another_task_is_refused(start):
    with pytest.raises(ValueError, match="belongs to another MuJoCo model"):
        Simulator(HORIZON).reset_to({**start, "task": np.array([2], np.int32)})
    env = stock_env("push-v3")
    with pytest.raises(ValueError, match="a state of pick-place-v3 cannot be restored in a SawyerPushEnvV3"):
        codec.restore_stock(env, {name: array[0] for name, array in start.items()})


def test_a_state_that_lacks_its_controls_is_refused(start):
    with pytest.raises(ValueError, match="the state lacks the arrays ctrl, mocap_pos"):
        Simulator(HORIZON).reset_to({n: a for n, a in start.items() if n not in ("ctrl", "mocap_pos")})


def test_actions_of_a_wrong_shape_or_that_are_not_finite(start):
    simulator = Simulator(HORIZON)
    handle = simulator.reset_to(start)
    with pytest.raises(ValueError, match=r"actions have shape \(4,\), and not \(1, 4\)"):
        simulator.step(handle, np.zeros(4))
    with pytest.raises(ValueError, match="the action of environment 0 is not finite"):
        simulator.step(handle, np.full((1, 4), np.nan))


def test_a_start_that_the_solver_cannot_solve_is_named(start):
    lost = {**start, "qpos": start["qpos"].copy()}
    lost["qpos"][0, 9:12] = [0.45, 0.45, 0.02]
    lost["goal"] = np.array([[-0.1, 0.9, 0.9]])
    with pytest.raises(ValueError, match=r"solves 0 of 1 states in 150 steps; the first that it does not is 0, goal"):
        solved(lost)


def test_ladders_need_two_levels():
    with pytest.raises(ValueError, match="a ladder needs at least two levels, not 1"):
        family("metaworld").starts(contexts(GOOD), 1)


def test_unknown_tasks_and_settings_whose_groups_do_not_fit():
    with pytest.raises(ValueError, match="no Meta-World task 'door-v3' is simulated; the tasks are pick-place-v3, "):
        task_index("door-v3")
    setting = dataclasses.replace(SETTINGS["metaworld-conflict"], task="push-v3")
    with pytest.raises(ValueError, match="setting 'metaworld-conflict' has 1 tasks and 2 groups"):
        family("metaworld").sample_bank(setting)


@pytest.mark.parametrize("key", [key for key in SETTINGS if key.startswith("metaworld")])
def test_banks_are_the_committed_ones_with_equal_groups(key):
    bank = load_bank(SETTINGS[key])
    for part in (bank.train, bank.held_out):
        assert len(set(np.bincount(part.evaluation_group))) == 1
        np.testing.assert_array_equal(part.oracle_group, part.evaluation_group)


def test_a_bank_with_another_hash_is_refused():
    bank = family("metaworld").sample_bank(dataclasses.replace(SETTINGS["metaworld-pickplace-small"], bank_seed=1))
    with pytest.raises(ValueError, match="it is not the bank that the results refer to"):
        require_hash(bank, load_bank(SETTINGS["metaworld-pickplace-small"]).sha256, "elsewhere")
