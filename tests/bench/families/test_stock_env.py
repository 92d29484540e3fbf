"""`stock_env` of the MuJoCo families: the unmodified environment plays a context as our batch simulator does."""

import numpy as np
import pytest

from scout_rl.bench.families import family
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.ladders.picture import mujoco_renders
from tests.bench.families.goal_families import random_actions

KEYS = (
    "fetch-air",
    "fetch-conflict",
    "fetch-withingroup",
    "fetch-withingroup-push",
    "pointmaze-medium",
    "pointmaze-large",
    "metaworld-pickplace",
    "metaworld-conflict",
)
ONE_EACH = ("fetch-conflict", "pointmaze-medium", "metaworld-conflict")


def one(arrays, i):
    return {name: array[i] for name, array in arrays.items()}


@pytest.fixture
def some(bank_of):
    """The setting, its family, and four held-out contexts: two of each end, where a second group is."""

    def pick(key):
        contexts = bank_of(key).held_out.contexts
        return SETTINGS[key], family(SETTINGS[key].family), {n: a[[0, 1, -2, -1]] for n, a in contexts.items()}

    return pick


def solver_actions(bench_family, starts, horizon):
    """The solutions [T, n, ...], each followed by no action to the end of its episode."""
    found = [solution.actions for solution in bench_family.solutions(starts)]
    return np.stack([np.pad(a, ((0, horizon - len(a)), (0, 0))) for a in found], axis=1).astype(np.float32)


def assert_same(ours, i, stock, where):
    assert set(ours) == set(stock)
    for name, array in stock.items():
        assert array.dtype == ours[name].dtype
        np.testing.assert_array_equal(ours[name][i], array, err_msg=f"{name} at {where}")


def assert_states_equal(a, b):
    assert set(a) == set(b)
    for name in a:
        assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape), name
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        pytest.param(key, kind, marks=[] if key in ONE_EACH else [pytest.mark.slow])
        for kind in ("solver", "random")
        for key in KEYS
    ],
)
def test_whole_episodes_agree_step_by_step(some, key, kind):
    """From the stock environment's own reset, to the last step of our horizon; equal to the last bit."""
    setting, bench_family, contexts = some(key)
    simulator, starts = bench_family.batch_simulator(setting), bench_family.target_starts(contexts)
    horizon, n = simulator.max_steps, len(next(iter(contexts.values())))
    actions = (
        solver_actions(bench_family, starts, horizon) if kind == "solver" else random_actions(simulator, n, seed=3)
    )
    envs = [bench_family.stock_env(setting, one(contexts, i)) for i in range(n)]
    state = simulator.reset_to(starts)
    first = simulator.observe(state)
    for i, env in enumerate(envs):
        assert_same(first, i, env.reset(), (i, 0))
    succeeded = np.zeros(n, dtype=bool)
    for t, action in enumerate(actions):
        state, result = simulator.step(state, action)
        for i, env in enumerate(envs):
            seen = env.step(action[i])
            assert_same(result.observation, i, seen.observation, (i, t + 1))
            assert seen.success == result.success[i]
            assert seen.over == result.truncated[i] == (t + 1 == horizon)
        judged = simulator.is_success(state)
        assert [env.is_success() for env in envs] == list(judged) == list(result.success)
        succeeded |= result.success
    if kind == "solver":
        assert succeeded.all()


@pytest.mark.parametrize("key", KEYS)
def test_a_reset_leaves_the_target_start(some, key):
    setting, bench_family, contexts = some(key)
    starts = bench_family.target_starts(contexts)
    for i in range(len(starts["goal"])):
        env = bench_family.stock_env(setting, one(contexts, i))
        for _ in range(2):
            env.reset()
            assert_states_equal(env.state(), one(starts, i))
            for _ in range(3):
                env.step(np.ones(env.env.action_space.shape, dtype=np.float32))


@pytest.mark.parametrize("key", ONE_EACH)
def test_a_state_is_restored_in_either_and_continues_there(some, key):
    """Taken half-way to the success, put into another stock environment and into the batch: the same from there on."""
    setting, bench_family, contexts = some(key)
    simulator, starts = bench_family.batch_simulator(setting), bench_family.target_starts(contexts)
    for i in (0, 3):
        actions = bench_family.trajectory(one(starts, i)).actions
        env, other = (bench_family.stock_env(setting, one(contexts, j)) for j in (i, i))
        env.reset()
        half = len(actions) // 2
        for action in actions[:half]:
            env.step(action)
        state = env.state()
        assert state["step_count"] == half
        shown = other.restore(state)
        assert_states_equal(other.state(), state)
        ours = simulator.reset_to({name: array[None] for name, array in state.items()})
        assert_states_equal({name: array[0] for name, array in simulator.get_states(ours).items()}, state)
        assert_same(simulator.observe(ours), 0, shown, (i, half))
        env.restore(state)
        for t, action in enumerate(actions[half:], start=half + 1):
            seen, again = env.step(action), other.step(action)
            ours, result = simulator.step(ours, action[None])
            assert_same(result.observation, 0, seen.observation, (i, t))
            assert_same(result.observation, 0, again.observation, (i, t))
            assert seen.success == again.success == result.success[0] == (t == len(actions))


@pytest.mark.parametrize("key", ONE_EACH)
def test_every_level_is_restored_as_it_is(some, key):
    setting, bench_family, contexts = some(key)
    ladder = bench_family.starts(contexts, 3)
    simulator = bench_family.batch_simulator(setting)
    for row in (0, 3):
        env = bench_family.stock_env(setting, one(contexts, row))
        ours = simulator.reset_to({name: array[row] for name, array in ladder.items()})
        for level in (2, 0, 1):
            cell = {name: array[row, level] for name, array in ladder.items()}
            assert_same(simulator.observe(ours), level, env.restore(cell), (row, level))
            assert_states_equal(env.state(), cell)


@pytest.mark.skipif(not mujoco_renders(), reason="MuJoCo finds no offscreen GL here")
@pytest.mark.parametrize("key", ONE_EACH)
def test_rendering_shows_the_context_and_changes_nothing(some, key):
    setting, bench_family, contexts = some(key)
    actions = bench_family.trajectory(one(bench_family.target_starts(contexts), 0)).actions[:20]
    watched, blind = (bench_family.stock_env(setting, one(contexts, 0), pixels=pixels) for pixels in (96, 0))
    watched.reset()
    blind.reset()
    pictures = [watched.render()]
    for action in actions:
        a, b = watched.step(action), blind.step(action)
        pictures.append(watched.render())
        for name, array in b.observation.items():
            np.testing.assert_array_equal(a.observation[name], array)
    assert all(picture.shape == (96, 96, 3) and picture.dtype == np.uint8 for picture in pictures)
    assert (pictures[0] != pictures[-1]).any()
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) > 20
    assert_states_equal(watched.state(), blind.state())


@pytest.mark.parametrize(
    ("key", "change", "sentence"),
    [
        ("fetch-conflict", {"object_xy": np.array([9.0, 0.7])}, "context 0: the object at .* outside the workspace"),
        ("pointmaze-medium", {"start": np.array([90.0, 0.0])}, "context 0: the start at .* in a wall or outside"),
        ("metaworld-conflict", {"vector": np.zeros(6)}, "context 0: object . is 0, outside the .* of push-v3"),
    ],
)
def test_a_context_that_the_stock_reset_could_not_draw_is_refused(some, key, change, sentence):
    setting, bench_family, contexts = some(key)
    with pytest.raises(ValueError, match=sentence):
        bench_family.stock_env(setting, one(contexts, 0) | change)
