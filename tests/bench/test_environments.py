"""Settings as Gymnasium ids: the stock environment, exactly, from any cell of the bank."""

import functools
import re
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from scout_rl.bench import ENV_IDS, env_id
from scout_rl.bench.environments import play_held_out, reset_to
from scout_rl.bench.families import family, load_bank
from scout_rl.bench.ladders.build import Wanted, build_ladder
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.picture import mujoco_renders

GRID = "doorkey-limited-small"
ONE_EACH = (GRID, "pointmaze-medium-small", "fetch-conflict-small", "metaworld-conflict-small")
SCAFFOLDED = [pytest.param(key, marks=[] if i < 2 else [pytest.mark.slow]) for i, key in enumerate(ONE_EACH)]
"""The other two need seconds to build a ladder."""
FOUR, TWO = (gymnasium.spaces.Box(-1.0, 1.0, (n,), np.float32) for n in (4, 2))
ACTIONS = {"minigrid": gymnasium.spaces.Discrete(7), "fetch": FOUR, "pointmaze": TWO, "metaworld": FOUR}
OF_THE_STOCK_SPACES = re.compile(r"A Box observation space (minimum|maximum) value is -?infinity")


def make(key, **options):
    return gymnasium.make(ENV_IDS[key], **options)


@pytest.fixture(scope="module")
def env_of():
    """One environment per setting, split and ladder, for all tests: episodes of one must not show in the next."""
    return functools.cache(make)


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


# -- ids -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("fetch-conflict", "scout/FetchConflict-v0"),
        ("doorkey-16-split-small", "scout/DoorKey16SplitSmall-v0"),
        ("fetch-withingroup-push", "scout/FetchWithinGroupPush-v0"),
        ("metaworld-pickplace", "scout/MetaWorldPickPlace-v0"),
    ],
)
def test_a_setting_names_its_id_and_the_id_its_setting(key, name):
    assert env_id(key) == name
    assert gymnasium.spec(name).kwargs["setting"] == key


def test_every_setting_has_an_id_of_its_own():
    assert list(ENV_IDS) == list(SETTINGS)
    assert {gymnasium.spec(name).kwargs["setting"] for name in ENV_IDS.values()} == set(SETTINGS)
    for key, name in ENV_IDS.items():
        assert re.fullmatch(r"scout/[A-Z][A-Za-z0-9]+-v0", name)
        assert name[len("scout/") : -len("-v0")].lower() == key.replace("-", ""), "the same letters"


def test_importing_the_bench_registers_and_imports_no_simulator():
    code = (
        "import sys, scout_rl.bench, gymnasium; print(sum(i.startswith('scout/') for i in gymnasium.registry)); "
        "print(*[m for m in ('jax', 'mujoco', 'minigrid', 'torch', 'matplotlib') if m in sys.modules])"
    )
    assert python(code) == [str(len(SETTINGS))]


def test_the_id_alone_is_enough_with_the_module_before_it():
    """Gymnasium 1.x loads no plugins. It imports the module that stands before an id: for workers and other tools."""
    code = (
        "import gymnasium\n"
        "try: gymnasium.make('scout_rl.bench:scout/FetchConflict-v0', split='refused before a simulator is loaded')\n"
        "except ValueError as error: print(type(error).__name__, 'scout/FetchConflict-v0' in gymnasium.registry)"
    )
    assert python(code) == ["Refusal", "True"]


def test_the_bench_imports_without_gymnasium():
    code = "import sys; sys.modules['gymnasium'] = None; import scout_rl.bench; print(len(scout_rl.bench.ENV_IDS))"
    assert python(code) == [str(len(SETTINGS))]


# -- Gymnasium's interface -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[] if key in ONE_EACH[:3] else [pytest.mark.slow]) for key in SETTINGS]
)
def test_check_env_has_nothing_to_say(key):
    renders = SETTINGS[key].family == "minigrid" or mujoco_renders()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = make(key)
        check_env(env.unwrapped, skip_render_check=not renders)
    messages = [str(w.message) for w in caught]
    assert [message for message in messages if not OF_THE_STOCK_SPACES.search(message)] == []
    base, setting = env.unwrapped, SETTINGS[key]
    assert (base.setting, base.n_contexts, base.n_levels) == (setting, setting.n_train, setting.n_levels)
    assert env.action_space == ACTIONS[setting.family]
    assert set(base.groups) == {group.name for group in setting.groups}
    assert len(base.groups) == base.n_contexts


def test_a_reset_without_options_draws_contexts_evenly_at_level_0(env_of):
    env = env_of(GRID)
    drawn = [[env.reset(seed=seed)[1]["context"], *(env.reset()[1]["context"] for _ in range(400))] for seed in (3, 3)]
    assert drawn[0] == drawn[1]
    counts = np.bincount(drawn[0], minlength=40)
    assert counts.min() > 0
    assert counts.max() < 30
    assert env.reset(seed=5)[1] == {"context": env.reset(seed=5)[1]["context"], "level": 0, "group": "all"}
    assert env.reset(options={"level": 3})[1]["level"] == 3


def test_a_picture_is_the_stock_one():
    env = make(GRID, render_mode="rgb_array")
    reset_to(env, 1, 0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    reset_to(env, 1, 4)
    assert (env.render() != first).any()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"context": 40}, "context is 40, but doorkey-limited-small has the train contexts 0 to 39"),
        ({"context": -1}, "context is -1, but .* 0 to 39"),
        ({"context": 1.5}, "context is 1.5, but must be a whole number"),
        ({"context": 0, "level": 5}, "level is 5, but doorkey-limited-small has the levels 0 to 4"),
        ({"contexts": 3}, "a reset option is 'contexts', but must be 'context' or 'level'"),
    ],
)
def test_a_wrong_cell_is_refused(options, sentence):
    with pytest.raises(Refusal, match=sentence):
        make(GRID).reset(options=options)


def test_held_out_contexts_start_at_level_0_only():
    env = make(GRID, split="held-out")
    assert env.unwrapped.n_levels == 1
    with pytest.raises(Refusal, match="level is 1, but held-out contexts have no ladder: they start at level 0 only"):
        reset_to(env, 0, 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split": "test"}, "split is 'test', but must be 'train' or 'held-out'"),
        ({"ladder": "policy"}, "ladder is 'policy', but must be 'manual' or 'solver'"),
    ],
)
def test_wrong_arguments_are_refused(options, sentence):
    with pytest.raises(Refusal, match=sentence):
        make(GRID, **options)


# -- parity --------------------------------------------------------------------------------------------------------


def assert_same(ours, stock):
    if isinstance(stock, dict):
        assert ours.keys() == stock.keys()
        for name in stock:
            assert_same(ours[name], stock[name])
    else:
        assert np.asarray(ours).dtype == np.asarray(stock).dtype
        np.testing.assert_array_equal(ours, stock)


def assert_plays_alike(env, player, first, context, level, actions):
    """The id beside an unmodified environment of this context alone, to the end of the episode."""
    observation, info = reset_to(env, context, level)
    base = env.unwrapped
    assert info == {"context": context, "level": level, "group": base.groups[context]}
    assert_same(observation, first)
    successes = []
    for t, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, info = env.step(action)
        stock_observation, stock_reward, stock_terminated, _, stock_info = player.env.step(action)
        assert_same(observation, stock_observation)
        assert (reward, terminated) == (stock_reward, stock_terminated)
        success = stock_info.get("is_success", stock_info.get("success", stock_terminated))
        assert info == {**stock_info, **info}
        assert info["is_success"] is bool(success)
        assert (info["context"], info["level"], info["group"]) == (context, level, base.groups[context])
        assert truncated == (t == base.horizon and not terminated)
        if {"achieved_goal", "desired_goal"} <= set(observation):
            assert base.compute_reward(observation["achieved_goal"], observation["desired_goal"], info) == reward
        successes.append(info["is_success"])
        if terminated:
            break
    return successes


def solver_then_random(bench_family, env, state, seed):
    """A solution, then random actions to the horizon."""
    env.action_space.seed(seed)
    solution = bench_family.trajectory(state).actions
    rest = [env.action_space.sample() for _ in range(env.unwrapped.horizon - len(solution))]
    return [*np.asarray(solution, env.action_space.dtype), *rest], len(solution)


@pytest.mark.parametrize("split", ["held-out", pytest.param("train", marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", ONE_EACH)
def test_level_0_is_the_stock_reset_of_the_context(env_of, key, split):
    """As `scout evaluate --stock` plays it; contexts of both ends, where a second group is."""
    setting, env = SETTINGS[key], env_of(key, split=split)
    bench_family, bank = family(setting.family), load_bank(setting)
    contexts = (bank.train if split == "train" else bank.held_out).contexts
    for context in (0, env.unwrapped.n_contexts - 1):
        one = {name: array[context] for name, array in contexts.items()}
        state = {n: a[0] for n, a in bench_family.target_starts({n: a[None] for n, a in one.items()}).items()}
        actions, n = solver_then_random(bench_family, env, state, seed=context)
        player = bench_family.stock_env(setting, one)
        player.reset()
        successes = assert_plays_alike(env, player, player.shown, context, 0, actions)
        assert successes[:n] == [False] * (n - 1) + [True]


@pytest.mark.parametrize("ladder", ["manual", pytest.param("solver", marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", SCAFFOLDED)
def test_every_level_is_the_restored_stock_environment(env_of, key, ladder):
    setting, env = SETTINGS[key], env_of(key, ladder=ladder)
    bench_family, contexts = family(setting.family), load_bank(setting).train.contexts
    last = env.unwrapped.n_contexts - 1
    rows = [0, last]
    starts, _ = build_ladder(Wanted(setting, {n: a[rows] for n, a in contexts.items()}, 5), ladder)
    for row, context in enumerate(rows):
        for level in (4, 1, 2):
            player = bench_family.stock_env(setting, {name: array[context] for name, array in contexts.items()})
            player.restore({name: array[row, level] for name, array in starts.items()})
            env.action_space.seed(level)
            actions = [env.action_space.sample() for _ in range(env.unwrapped.horizon)]
            assert_plays_alike(env, player, player.shown, context, level, actions)


# -- evaluation ----------------------------------------------------------------------------------------------------


def test_every_held_out_context_is_played_once_from_its_real_start(env_of):
    """A policy that solves the long contexts and waits in the short ones."""
    env = env_of("doorkey-split-small", split="held-out")
    base, played = env.unwrapped, []

    class Policy:
        def __call__(self, observation):
            if base.player.env.step_count == 0:
                played.append(base._tags["context"])
                state = base.player.state()
                long = base.groups[played[-1]] == "long"
                self.actions = iter(family("minigrid").trajectory(state).actions if long else [])
            return next(self.actions, 6)

    outcomes, groups = play_held_out(env, Policy())
    assert played == list(range(40))
    assert groups == base.groups
    assert set(groups) == {"short", "long"}
    assert outcomes.tolist() == [group == "long" for group in groups]


def test_training_contexts_are_no_evaluation(env_of):
    with pytest.raises(Refusal, match='needs a setting made with split="held-out"'):
        play_held_out(env_of(GRID), lambda observation: 6)
    with pytest.raises(Refusal, match='needs a setting made with split="held-out"'):
        play_held_out(gymnasium.make("CartPole-v1"), lambda observation: 0)
