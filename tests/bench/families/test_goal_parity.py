"""Fetch and PointMaze against the stock environments: the same observations, rewards and successes, bit for bit."""

import numpy as np
import pytest

from tests.bench.families.goal_families import FETCH, MAZES, flat, play, random_actions, simulator_of, stock_of


def compare(key, ladder, seed):
    """Whole episodes from every cell, stepped both ways."""
    simulator, starts = simulator_of(key), flat(ladder)
    n = len(starts["goal"])
    actions = random_actions(simulator, n, seed)
    first = simulator.observe(simulator.reset_to(starts))
    observation, reward, success, truncated = play(simulator, starts, actions)
    assert truncated[-1].all()
    assert not truncated[:-1].any()
    env, success_key, restore = stock_of(key)
    env.reset(seed=0)
    succeeded = 0
    for i in range(n):
        restore(env, {name: array[i] for name, array in starts.items()})
        at_reset = env._get_obs(env.point_env._get_obs()[0]) if hasattr(env, "point_env") else env._get_obs()
        for name, array in at_reset.items():
            np.testing.assert_array_equal(first[name][i], array)
        for t, action in enumerate(actions[:, i]):
            seen, stock_reward, terminated, _, info = env.step(action)
            assert np.array_equal(np.concatenate(list(seen.values())), observation[t, i]), (key, i, t)
            assert stock_reward == reward[t, i]
            assert bool(info[success_key]) == success[t, i]
            assert not terminated
        succeeded += success[:, i].any()
    print(f"{key}: {n} whole episodes bit-equal, {succeeded} of them with a success")
    assert succeeded


@pytest.mark.parametrize("key", ["fetch-conflict", *MAZES])
def test_whole_episodes_from_every_level_of_ten_contexts(ladder_of, key):
    compare(key, ladder_of(key)[1], seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*FETCH, *MAZES])
@pytest.mark.parametrize("source", ["manual", "solver"])
def test_whole_episodes_of_every_bank_and_both_ladders(ladder_of, key, source):
    compare(key, ladder_of(key, source)[1], seed=2)


@pytest.mark.parametrize("key", ["fetch-conflict", "pointmaze-medium"])
def test_level_0_is_what_a_stock_reset_leaves(key):
    """Drawn by the stock reset itself, then rebuilt from the context alone: the whole simulator state is equal."""
    from scout_rl.bench.families import family
    from scout_rl.bench.families.fetch import codec as fetch_codec
    from scout_rl.bench.families.pointmaze import codec as maze_codec
    from scout_rl.bench.settings.settings import SETTINGS

    env, _, _ = stock_of(key)
    bench_family = family(SETTINGS[key].family)
    for seed in range(5):
        env.reset(seed=seed)
        if bench_family.key == "fetch":
            stock = fetch_codec.read_stock(env)
            contexts = {"object_xy": stock["qpos"][15:17], "goal": stock["goal"]}
        else:
            stock = maze_codec.read_stock(env)
            contexts = {"maze": np.array(0), "start": stock["qpos"], "goal": stock["goal"]}
        ours = bench_family.target_starts({name: array[None] for name, array in contexts.items()})
        for name, array in stock.items():
            np.testing.assert_array_equal(ours[name][0], array, err_msg=name)


def test_box_tests_before_those_of_meshes_change_no_contact(bank_of):
    """Against the stock model after every step, with the arm driven into its own robot."""
    import mujoco

    from scout_rl.bench.families import family
    from scout_rl.bench.families.fetch.simulator import shared_stock_env
    from scout_rl.bench.families.mujoco_batch import MujocoBatch

    stock, simulator = shared_stock_env().model, simulator_of("fetch-conflict")
    meshes, n = stock.geom_type == mujoco.mjtGeom.mjGEOM_MESH, 8
    assert (simulator.pool.model.body_geomnum != stock.body_geomnum).sum() == meshes.sum(), "nothing was changed"
    starts = family("fetch").target_starts({k: a[:n] for k, a in bank_of("fetch-conflict").train.contexts.items()})
    pushes = np.random.default_rng(5).choice([-1.0, 1.0], size=(n, 4))  # each arm goes on in one direction
    handles = [simulator.reset_to(starts) for _ in range(2)]
    handles[1].batch = MujocoBatch(stock, n, n_threads=1)
    handles[1].batch.set_states({k: a for k, a in starts.items() if k in handles[1].batch.layout.shapes})
    touching = set()
    for t in range(40):
        for handle in handles:
            simulator.advance(handle, pushes if t % 10 else -pushes)
        for ours, theirs in zip(handles[0].batch.data, handles[1].batch.data, strict=True):
            assert ours.ncon == theirs.ncon
            np.testing.assert_array_equal(ours.contact.geom, theirs.contact.geom)
            np.testing.assert_array_equal(ours.contact.dist, theirs.contact.dist)
            np.testing.assert_array_equal(ours.qpos, theirs.qpos)
            np.testing.assert_array_equal(ours.qacc, theirs.qacc)
            touching |= {frozenset(pair) for pair in theirs.contact.geom.tolist()}
    arm = [pair for pair in touching if all(meshes[list(pair)])]
    assert arm, "no two parts of the robot touched: the test shows nothing"


@pytest.mark.parametrize("key", MAZES)
def test_leaving_out_contacts_that_cannot_be_changes_nothing(bank_of, key):
    """Against ``mj_forward`` and ``mj_step`` in every step: balls pushed about, and at top speed into walls."""
    from mujoco import mj_forward, mj_step

    from scout_rl.bench.families import family
    from scout_rl.bench.families.pointmaze.simulator import MAX_SPEED, Simulator
    from scout_rl.bench.settings.settings import SETTINGS

    class Everything(Simulator):
        def advance(self, state, action):
            state.batch.write("qvel", state.read[0][:, 2:].clip(-MAX_SPEED, MAX_SPEED))
            for ctrl, row, data in zip(state.batch.views("ctrl"), action, state.batch.data, strict=True):
                mj_forward(self.pool.model, data)
                ctrl[:] = row
                mj_step(self.pool.model, data)

    contexts = {name: array[:32] for name, array in bank_of(key).train.contexts.items()}
    starts = family("pointmaze").target_starts(contexts)
    ours, reference = simulator_of(key), Everything(SETTINGS[key].task)
    touched = fastest = 0.0
    for held in (3, 100):
        pushes = np.random.default_rng(held).uniform(-1.5, 1.5, (400 // held + 1, 32, 2))
        a, b = ours.reset_to(starts), reference.reset_to(starts)
        for action in np.repeat(pushes, held, axis=0)[:400].astype(np.float32):
            position, squared = a.read[1], (a.read[0][:, 2:] ** 2).sum(axis=1)
            touched += ours.maze.may_touch(position, squared).mean() / 800
            a, b = ours.step(a, action)[0], reference.step(b, action)[0]
            np.testing.assert_array_equal(a.read[0], b.read[0])
            fastest = max(fastest, float(squared.max()))
    assert 0.1 < touched < 0.9
    assert fastest > MAX_SPEED**2
