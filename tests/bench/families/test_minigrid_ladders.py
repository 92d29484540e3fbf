"""The solver, the hand-built ladders and the solver ladders."""

import numpy as np
import pytest

from scout_rl.bench.families.minigrid import codec
from scout_rl.bench.families.minigrid.contexts import stock_env
from scout_rl.bench.families.minigrid.solver import each, solve, trajectory
from scout_rl.bench.settings.settings import SETTINGS

DOOR, KEY, GOAL = 4, 5, 8
FULL = [key for key, row in SETTINGS.items() if row.family == "minigrid" and not key.endswith("-small")]


def part(contexts, n):
    return {name: array[:n] for name, array in contexts.items()}


def all_contexts(bank):
    return each(bank.contexts)


@pytest.mark.parametrize("key", ["doorkey", pytest.param("doorkey-16", marks=pytest.mark.slow), "multiroom"])
def test_the_solver_solves_every_context(bank_of, key):
    limit = stock_env(SETTINGS[key]).max_steps
    lengths = [len(solve(context) or []) for context in all_contexts(bank_of(key))]
    assert min(lengths) > 0
    assert max(lengths) <= limit


@pytest.mark.parametrize("key", ["doorkey", "doorkey-16", "multiroom"])
def test_solutions_hold_in_the_stock_environment_and_pass_through_the_solvers_states(bank_of, key):
    env = stock_env(SETTINGS[key])
    for context in all_contexts(bank_of(key))[:25]:
        states, actions = trajectory(context)
        env.reset(seed=int(context["seed"]))
        for t, action in enumerate(actions):
            stock = codec.read_stock(env)
            for name in ("grid", "agent_pos", "agent_dir", "carrying"):
                np.testing.assert_array_equal(stock[name], states[name][t])
            _, reward, terminated, _, _ = env.step(int(action))
            assert terminated == (t == len(actions) - 1)
        assert reward > 0


def test_solutions_are_shortest():
    """A search that steps the stock environment with all seven actions finds nothing shorter."""
    import gymnasium

    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0").unwrapped
    for seed in (0, 1):
        env.reset(seed=seed)
        start = codec.read_stock(env)
        assert len(solve(start)) == brute_force_length(env, start)


def brute_force_length(env, start):
    def fingerprint(state):
        return b"".join(state[n].tobytes() for n in ("grid", "agent_pos", "agent_dir", "carrying"))

    visited, ring, length = {fingerprint(start)}, [start], 0
    while ring:
        length += 1
        next_ring = []
        for state in ring:
            for action in range(7):
                codec.restore_stock(env, state)
                env.step_count = 0
                if env.step(action)[2]:
                    return length
                after = codec.read_stock(env)
                if fingerprint(after) not in visited:
                    visited.add(fingerprint(after))
                    next_ring.append(after)
        ring = next_ring
    raise AssertionError("no solution")


def remaining(ladder):
    n_contexts, n_levels = ladder["agent_dir"].shape
    flat = each({name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()})
    return np.array([len(solve(state)) for state in flat]).reshape(n_contexts, n_levels)


def check_ladder(minigrid, bank, ladder):
    steps = remaining(ladder)
    assert (np.diff(steps, axis=1) <= 0).all()
    assert (steps[:, -1] == 1).all(), "the easiest level is adjacent to the goal"
    assert (steps[:, 0] > 1).all()
    target = minigrid.target_starts(part(bank.train.contexts, len(steps)))
    for name, array in ladder.items():
        np.testing.assert_array_equal(array[:, 0], target[name])
    assert (ladder["step_count"] == 0).all()


@pytest.mark.parametrize("key", ["doorkey", "doorkey-16", "multiroom"])
def test_remaining_steps_never_rise_with_the_level(minigrid, bank_of, key):
    contexts = part(bank_of(key).train.contexts, 40)
    check_ladder(minigrid, bank_of(key), minigrid.starts(contexts, 5))
    check_ladder(minigrid, bank_of(key), minigrid.solver_ladder(contexts, 9))


@pytest.mark.slow
@pytest.mark.parametrize("key", FULL)
def test_every_ladder_of_every_bank(minigrid, bank_of, key):
    contexts = bank_of(key).train.contexts
    ladders = [minigrid.starts(contexts, 5), *(minigrid.solver_ladder(contexts, n) for n in (5, 9, 13))]
    for ladder in ladders:
        check_ladder(minigrid, bank_of(key), ladder)


def door_facts(ladder):
    grid = ladder["grid"]
    door = grid[..., 0] == DOOR
    locked = (door & (grid[..., 2] == 2)).any(axis=(2, 3))
    column = door[:, 0].any(axis=2).argmax(axis=1)
    return ladder["carrying"][..., 0] == KEY, ~locked, ladder["agent_pos"][..., 0] > column[:, None]


def test_doorkey_stages(minigrid, bank_of):
    ladder = minigrid.starts(bank_of("doorkey").train.contexts, 5)
    has_key, unlocked, past = door_facts(ladder)
    np.testing.assert_array_equal(has_key, [[False, True, True, True, True]] * 200)
    np.testing.assert_array_equal(unlocked, [[False, False, False, True, True]] * 200)
    np.testing.assert_array_equal(past, [[False, False, False, True, True]] * 200)
    x, y = np.moveaxis(ladder["agent_pos"][:, 2], -1, 0)
    assert (ladder["agent_dir"][:, 2] == 0).all(), "at the locked door the agent faces it"
    assert (ladder["grid"][np.arange(200), 2, x + 1, y, 0] == DOOR).all()


def test_progress_fractions_recover_the_order_key_door_goal(minigrid, bank_of):
    """No stage label enters a solver ladder; still the stages come in order, and all of them are met."""
    for n_levels in (5, 9, 13):
        ladder = minigrid.solver_ladder(bank_of("doorkey").train.contexts, n_levels)
        has_key, unlocked, past = door_facts(ladder)
        adjacent = remaining(ladder) == 1
        stage = has_key.astype(int) + unlocked + past + adjacent
        assert (np.diff(stage, axis=1) >= 0).all()
        assert (stage[:, 0] == 0).all()
        assert (stage[:, -1] == 4).all()
        first = [flag.argmax(axis=1) for flag in (has_key, unlocked, past, adjacent)]
        assert (np.diff(np.stack(first), axis=0) >= 0).all()
        in_order = (first[0] < first[1]) & (first[1] < first[3])
        print(f"{n_levels} levels: mean first level with key, door, past it, goal", np.mean(first, axis=1))
        assert in_order.mean() > (0.5 if n_levels == 5 else 0.95), in_order.mean()


def test_multiroom_route(minigrid, bank_of):
    ladder = minigrid.starts(bank_of("multiroom").train.contexts, 5)
    shut = (ladder["grid"][..., 0] == DOOR) & (ladder["grid"][..., 2] != 0)
    n_shut = shut.sum(axis=(2, 3))
    assert (n_shut[:, 0] == 5).all()
    assert (np.diff(n_shut, axis=1) <= 0).all()
    assert (n_shut[:, -1] == 0).all()
    ahead = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])[ladder["agent_dir"][:, -1]]
    x, y = (ladder["agent_pos"][:, -1] + ahead).T
    assert (ladder["grid"][np.arange(200), -1, x, y, 0] == GOAL).all()


def test_bad_level_counts_are_refused(minigrid, bank_of):
    doorkey, multiroom = (part(bank_of(key).train.contexts, 2) for key in ("doorkey", "multiroom"))
    with pytest.raises(ValueError, match="has 5 levels, not 9; take a solver ladder"):
        minigrid.starts(doorkey, 9)
    for build in (minigrid.starts, minigrid.solver_ladder):
        with pytest.raises(ValueError, match="at least two levels"):
            build(multiroom, 1)


def test_a_layout_without_a_solution(minigrid, bank_of):
    context = all_contexts(bank_of("doorkey"))[0]
    grid = context["grid"].copy()
    grid[grid[..., 0] == KEY] = (1, 0, 0)
    assert solve(context | {"grid": grid}) is None
    with pytest.raises(ValueError, match="no solution"):
        trajectory(context | {"grid": grid})
