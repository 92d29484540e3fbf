"""The batch simulator against the stock package: the same observations, rewards and endings, bit for bit."""

import functools
from collections import Counter

import jax
import numpy as np
import pytest

from scout_rl.bench.families.minigrid import codec
from scout_rl.bench.families.minigrid.contexts import stock_env
from scout_rl.bench.families.minigrid.simulator import VIEW, Simulator, _visible
from scout_rl.bench.settings.settings import SETTINGS

STEPS = 20


@functools.partial(jax.jit, static_argnums=0)
def scan_steps(simulator: Simulator, state, actions):
    return jax.lax.scan(lambda s, a: jax.vmap(simulator.step)(s, a), state, actions)


def random_starts(minigrid, bank, n_contexts, generator):
    """Every level of n train contexts and the target starts of n held-out ones; which start near the time
    limit."""
    train = {name: array[:n_contexts] for name, array in bank.train.contexts.items()}
    ladder = minigrid.starts(train, 5)
    held_out = minigrid.target_starts({n: a[:n_contexts] for n, a in bank.held_out.contexts.items()})
    starts = {n: np.concatenate([a.reshape(-1, *a.shape[2:]), held_out[n]]) for n, a in ladder.items()}
    return starts, generator.random(len(starts["agent_dir"])) < 1 / 3


def compare(minigrid, key, bank, n_contexts, seed):
    """Random episodes from random starts, stepped both ways; how often each thing happened."""
    generator = np.random.default_rng(seed)
    setting = SETTINGS[key]
    starts, near_limit = random_starts(minigrid, bank, n_contexts, generator)
    simulator, env = minigrid.simulator(setting), stock_env(setting)
    starts["step_count"] = np.where(near_limit, env.max_steps - STEPS // 2, starts["step_count"])
    n = len(near_limit)
    actions = generator.integers(0, 7, (STEPS, n)).astype(np.int32)
    packed = codec.to_simulator(simulator, starts)
    first_view = np.asarray(jax.vmap(simulator.observe)(packed))
    _, ours = scan_steps(simulator, packed, actions)
    ours = jax.tree.map(np.asarray, ours)

    env.reset(seed=0)
    seen = Counter()
    for i in range(n):
        codec.restore_stock(env, {name: array[i] for name, array in starts.items()})
        np.testing.assert_array_equal(env.gen_obs()["image"], first_view[i])
        for t in range(STEPS):
            before = env.grid.encode(), env.carrying
            observation, reward, terminated, truncated, _ = env.step(int(actions[t, i]))
            assert np.array_equal(observation["image"], ours.observation[t, i]), (key, i, t)
            assert np.float32(reward) == ours.reward[t, i], (key, i, t)
            assert (terminated, truncated) == (ours.terminated[t, i], ours.truncated[t, i]), (key, i, t)
            seen["steps"] += 1
            seen["goals"] += terminated
            seen["truncations"] += truncated
            seen["pickups"] += env.carrying is not None and before[1] is None
            seen["drops"] += env.carrying is None and before[1] is not None
            change = env.grid.encode()[..., 2].astype(int) - before[0][..., 2]
            seen["unlocked"] += change.min() == -2
            seen["opened"] += change.min() == -1
            seen["closed"] += change.max() == 1
            if terminated or truncated:
                break
    return seen


def happened(seen, key):
    common = {"goals", "truncations", "closed"}
    return common | ({"opened"} if key == "multiroom" else {"pickups", "drops", "unlocked"}) <= {
        name for name, count in seen.items() if count
    }


@pytest.mark.parametrize(
    "key",
    ["doorkey", "multiroom", *(pytest.param(key, marks=pytest.mark.slow) for key in ("doorkey-limited", "doorkey-16"))],
)
def test_parity_with_the_stock_package(minigrid, bank_of, key):
    seen = compare(minigrid, key, bank_of(key), n_contexts=30, seed=1)
    assert seen["steps"] > 2000
    assert happened(seen, key), seen


def test_a_settings_own_horizon_is_the_stock_environments_too(minigrid, bank_of):
    own, stock = SETTINGS["doorkey-limited"], SETTINGS["doorkey"]
    assert own.horizon == 100
    assert (
        minigrid.simulator(own).max_steps == minigrid.batch_simulator(own).max_steps == stock_env(own).max_steps == 100
    )
    assert minigrid.simulator(stock).max_steps == stock_env(stock).max_steps == 640
    assert bank_of("doorkey-limited").sha256 == bank_of("doorkey").sha256


@pytest.mark.slow
def test_parity_over_all_layouts_and_levels(minigrid, bank_of):
    seen = Counter()
    for seed, key in enumerate(["doorkey", "doorkey-16", "multiroom", "doorkey-split"]):
        here = compare(minigrid, key, bank_of(key), n_contexts=SETTINGS[key].n_train, seed=seed)
        assert happened(here, key), here
        seen += here
    print(dict(seen))
    assert seen["steps"] >= 50_000


def test_visibility_of_random_views_is_the_stock_rule():
    """Denser and stranger views than the layouts give: any mix of walls and open cells."""
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import Wall

    generator = np.random.default_rng(0)
    density = generator.random((600, 1, 1))
    walls = generator.random((600, VIEW, VIEW)) < density
    walls[:, VIEW // 2, VIEW - 1] = False
    ours = np.asarray(jax.jit(jax.vmap(_visible))(~walls.reshape(600, -1))).reshape(walls.shape)
    for wall, visible in zip(walls, ours, strict=True):
        grid = Grid(VIEW, VIEW)
        for i, j in np.argwhere(wall):
            grid.set(i, j, Wall())
        np.testing.assert_array_equal(grid.process_vis((VIEW // 2, VIEW - 1)), visible)


def test_codec_refuses_what_it_cannot_simulate(minigrid, bank_of):
    state = {n: a[0] for n, a in minigrid.target_starts(bank_of("doorkey").train.contexts).items()}
    simulator = minigrid.simulator(SETTINGS["doorkey"])
    lava = state | {"grid": np.where(np.arange(3) == 0, 9, state["grid"]).astype(np.uint8)}
    with pytest.raises(ValueError, match="object type 9 is not simulated"):
        codec.to_simulator(simulator, lava)
    with pytest.raises(ValueError, match="8x8 cells cannot be restored in a simulator of 16x16"):
        codec.to_simulator(minigrid.simulator(SETTINGS["doorkey-16"]), state)
