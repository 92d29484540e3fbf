"""Solver, hand-built and solver ladders of Meta-World: solved, valid, nearer at every level, held."""

import dataclasses

import numpy as np
import pytest

from scout_rl.bench.families import family
from scout_rl.bench.families.metaworld import GRASP_STEPS, codec
from scout_rl.bench.families.metaworld.contexts import target_starts
from scout_rl.bench.families.metaworld.simulator import HORIZON, Simulator
from scout_rl.bench.families.metaworld.solver import attempt
from scout_rl.bench.families.metaworld.tasks import TASKS, stock_env
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.ladders.ladder import level_fractions
from tests.bench.families.conformance import check_family

FULL = ("metaworld-pickplace", "metaworld-conflict")
SMALL = tuple(f"{key}-small" for key in FULL)
SOURCES = ("manual", "solver")


@pytest.fixture(scope="module")
def metaworld():
    return family("metaworld")


def build(bench_family, contexts, source, n_levels=5):
    return (bench_family.starts if source == "manual" else bench_family.solver_ladder)(contexts, n_levels)


def flat(ladder):
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}


@pytest.mark.parametrize("key", FULL)
def test_the_solver_solves_every_training_context(bank_of, key, capsys):
    check_solved(bank_of(key).train.contexts, "train", capsys)


@pytest.mark.slow
@pytest.mark.parametrize("key", FULL)
def test_the_solver_solves_every_held_out_context(bank_of, key, capsys):
    check_solved(bank_of(key).held_out.contexts, "held-out", capsys)


def check_solved(contexts, name, capsys):
    attempts = attempt(target_starts(contexts))
    for index in np.unique(contexts["task"]):
        mine = [a for a, t in zip(attempts, contexts["task"], strict=True) if t == index]
        steps = [len(a.solution.actions) for a in mine]
        with capsys.disabled():
            print(
                f"\n{TASKS[index].name} {name}: {sum(a.solved for a in mine)} of {len(mine)} solved, "
                f"{min(steps)} to {max(steps)} steps",
                end="",
            )
    assert all(found.solved for found in attempts)
    assert max(len(found.solution.actions) for found in attempts) <= 0.75 * HORIZON  # slack for a learner


def test_the_contract_holds(metaworld):
    three_of_each = dataclasses.replace(SETTINGS["metaworld-conflict-small"], n_train=6, n_held_out=2)
    assert check_family(metaworld, three_of_each) == []


def check_rungs(bench_family, contexts, source, n_levels, capsys, label):
    ladder = build(bench_family, contexts, source, n_levels)
    report = bench_family.check_ladder(contexts, ladder, by_hand=source == "manual")
    remaining = np.array([len(a.solution.actions) if a.solved else 10**6 for a in attempt(flat(ladder))])
    falls = (np.diff(remaining.reshape(-1, n_levels), axis=1) <= 0).all(axis=1)
    with capsys.disabled():
        print(f"\n{label} {source} {n_levels} levels: {report}; steps never rise in {falls.mean():.1%}", end="")
    assert report.ok, str(report)
    assert not report.warnings, "no assisted start is already a success"
    return falls


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("key", SMALL)
def test_ladders_are_valid_and_nearer_at_every_level(metaworld, bank_of, key, source, capsys):
    assert check_rungs(metaworld, bank_of(key).train.contexts, source, 5, capsys, key).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_levels", [5, 13])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("key", FULL)
def test_ladders_of_all_contexts_are_valid_and_nearer_at_every_level(metaworld, bank_of, key, source, n_levels, capsys):
    falls = check_rungs(metaworld, bank_of(key).train.contexts, source, n_levels, capsys, key)
    assert falls.all() if n_levels == 5 else falls.mean() >= 0.99


def test_any_number_of_levels(metaworld, bank_of):
    contexts = {name: array[[0, 16]] for name, array in bank_of("metaworld-conflict-small").train.contexts.items()}
    for n_levels in (2, 7):
        assert metaworld.check_ladder(contexts, metaworld.starts(contexts, n_levels), by_hand=True).ok


def test_the_object_is_that_fraction_of_the_way(metaworld, bank_of):
    contexts = bank_of("metaworld-conflict-small").train.contexts
    ladder = metaworld.starts(contexts, 5)
    thing, start, goal = ladder["qpos"][:, :, 9:12], ladder["object_start"], ladder["goal"]
    push = contexts["task"] == 1
    way = np.linalg.norm((goal - start)[push], axis=-1) - TASKS[1].radius
    gone = np.linalg.norm((thing - start)[push], axis=-1)
    np.testing.assert_allclose(gone, way * level_fractions(5), atol=0.002)
    left = np.linalg.norm((thing - goal)[~push], axis=-1)
    assert (np.diff(left, axis=1)[:, 2:] < 0).all()  # the first half of the way to a shelf goes up


def test_grasps_survive_ten_closed_steps_and_pushed_objects_lie(metaworld, bank_of):
    ladder = metaworld.starts(bank_of("metaworld-conflict-small").train.contexts, 5)
    starts = flat({name: array[:, 1:] for name, array in ladder.items()})
    simulator = Simulator(HORIZON)
    handle = simulator.reset_to(starts)
    carried = np.array([TASKS[t].carried for t in starts["task"]])
    for _ in range(10):
        np.testing.assert_array_equal(simulator.pads_touch(handle), carried)
        handle, result = simulator.step(handle, np.tile([0, 0, 0, 1.0], (handle.n, 1)))
    np.testing.assert_array_equal(simulator.pads_touch(handle), carried)
    moved = np.linalg.norm(result.observation["achieved_goal"] - starts["qpos"][:, 9:12], axis=1)
    assert moved.max() < 0.01


@pytest.mark.parametrize(("left_out", "reason"), [("ctrl", "does not hold"), ("mocap_pos", "does not rest")])
def test_without_controls_or_mocap_the_grasp_is_lost_and_the_validator_says_so(metaworld, bank_of, left_out, reason):
    contexts = bank_of("metaworld-conflict-small").train.contexts
    ladder = metaworld.starts(contexts, 5)
    broken = {**ladder, left_out: np.zeros_like(ladder[left_out])}
    report = metaworld.check_ladder(contexts, broken, by_hand=True)
    shelf = np.flatnonzero(contexts["task"] == 2)
    assert report.invalid_cells == {(int(c), level) for c in shelf for level in range(1, 5)}
    assert all(problem.reason.startswith(reason) for problem in report.problems), str(report)


def test_the_validator_names_every_kind_of_fault(metaworld, bank_of):
    contexts = {name: array[:4] for name, array in bank_of("metaworld-pickplace-small").train.contexts.items()}
    ladder = metaworld.starts(contexts, 5)
    ladder["qvel"][0, 1, 3] = np.nan
    ladder["goal"][1, 2] += 0.01
    ladder["qpos"][2, 0, 9:12] = ladder["goal"][2, 0]
    ladder["qpos"][3, 3, 9:12] = [0.9, 0.6, 0.02]
    found = {(p.context, p.level): p.reason for p in metaworld.check_ladder(contexts, ladder, by_hand=True).problems}
    assert found == {
        (0, 1): "not finite",
        (1, 2): "carries the goal of another context",
        (2, 0): "a level-0 start that is already a success",
        (3, 3): "out of bounds",
    }


def test_assisted_starts_that_are_a_success_are_counted(metaworld, bank_of):
    contexts = {name: array[:2] for name, array in bank_of("metaworld-conflict-small").train.contexts.items()}
    ladder = metaworld.starts(contexts, 5)
    ladder["qpos"][0, 4, 9:12] = ladder["goal"][0, 4]
    report = metaworld.check_ladder(contexts, ladder, by_hand=True)
    assert report.ok
    assert report.warnings == ("push-v3: 1 of 8 assisted starts are already a success",)


@pytest.mark.slow
def test_the_validator_of_stock_environments_agrees(metaworld, bank_of):
    """The same starts through the stock environment, its codec and the validator that users have."""
    from scout_rl.codecs import codec_for
    from scout_rl.ladders.ladder import Ladder
    from scout_rl.ladders.validate import validate

    env = stock_env("shelf-place-v3")
    contexts = bank_of("metaworld-conflict-small").train.contexts
    rows = np.flatnonzero(contexts["task"] == 2)[:4]
    starts = metaworld.starts({name: array[rows] for name, array in contexts.items()}, 5)
    env._last_rand_vec = np.array(contexts["vector"][rows[0]])
    env.reset()
    states = []
    for c in range(len(rows)):
        states.append([])
        for level in range(5):
            codec.restore_stock(env, {name: array[c, level] for name, array in starts.items()})
            states[-1].append(codec_for(env).get_state(env))
    report = validate(
        Ladder.from_states(states),
        env,
        holds=lambda env: bool(env.unwrapped.touching_main_object),
        settle=[np.array([0, 0, 0, 1], dtype=np.float32)] * GRASP_STEPS,
        success="success",
    )
    assert report.ok, str(report)
