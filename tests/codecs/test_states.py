"""States as values: round trips, corruption, refusals; and what each codec restores."""

from __future__ import annotations

import gymnasium as gym
import hypothesis.extra.numpy as hnp
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest
from gymnasium.utils import seeding
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl.codecs import Codec, State, codec_for
from scout_rl.codecs.deepcopy import DeepcopyCodec
from tests.codecs import planted

DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.dtype("<U3")])
ARRAYS = st.dictionaries(
    st.text("abc/_#.", min_size=1, max_size=6),
    DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))),
    max_size=4,
)
VERSIONS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)


@settings(max_examples=60, deadline=None)
@given(ARRAYS, st.text(max_size=5), VERSIONS)
def test_saved_and_loaded_a_state_is_equal(tmp_path_factory, arrays, codec, library):
    state = State(arrays, codec, library)
    path = tmp_path_factory.mktemp("state") / "s.npz"
    assert state.save(path) == state.sha256
    loaded = State.load(path)
    assert loaded == state
    assert set(loaded.arrays) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array)
        assert loaded.arrays[name].dtype == array.dtype


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_harmless(tmp_path_factory, where, flip):
    path = tmp_path_factory.getbasetemp() / "whole.npz"
    state = State({"qpos": np.arange(4.0), "name": np.array("ant")}, "mujoco", {"mujoco": "3.3.0"})
    if not path.exists():
        state.save(path)
    content = bytearray(path.read_bytes())
    content[where % len(content)] ^= flip
    damaged = path.with_name("damaged.npz")
    damaged.write_bytes(bytes(content))
    try:
        loaded = State.load(damaged)
    except ValueError as error:
        assert "damaged" in str(error)  # noqa: PT017
    else:
        assert loaded == state


def test_half_a_file_and_no_file(tmp_path):
    state = State({"qpos": np.arange(400.0)}, "mujoco", {})
    state.save(tmp_path / "s.npz")
    (tmp_path / "half.npz").write_bytes((tmp_path / "s.npz").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"half\.npz is damaged"):
        State.load(tmp_path / "half.npz")
    with pytest.raises(FileNotFoundError):
        State.load(tmp_path / "none.npz")


def test_states_are_frozen_and_hold_no_objects():
    source = np.zeros(3)
    state = State({"qpos": source}, "mujoco", {})
    source[:] = 1
    assert not state.arrays["qpos"].any()
    with pytest.raises(ValueError, match="read-only"):
        state.arrays["qpos"][0] = 1
    with pytest.raises(ValueError, match="Python objects"):
        State({"x": np.array([None])}, "mujoco", {})
    assert state.replace(qpos=source) != state
    assert hash(state) == hash(State({"qpos": np.zeros(3)}, "mujoco", {}))


@pytest.fixture(scope="module")
def hopper():
    env = gym.make("Hopper-v5")
    env.reset(seed=0)
    return env, codec_for(env)


def test_codecs_fulfil_the_contract(hopper):
    assert isinstance(hopper[1], Codec)
    assert isinstance(DeepcopyCodec(), Codec)


def test_another_mujoco_version_is_refused(hopper):
    env, codec = hopper
    state = codec.get_state(env)
    old = State(state.arrays, state.codec, {"mujoco": "2.3.7"})
    with pytest.raises(ValueError, match=r"written with mujoco 2\.3\.7, and mujoco 3\.\d+\.\d+ is installed"):
        codec.set_state(env, old)


def test_another_model_and_another_codec_are_refused(hopper):
    env, codec = hopper
    ant = gym.make("Ant-v5")
    ant.reset(seed=0)
    with pytest.raises(ValueError, match="another MuJoCo model than that of HopperEnv"):
        codec.set_state(env, codec.get_state(ant))
    with pytest.raises(ValueError, match="written by the 'deepcopy' codec"):
        codec.set_state(env, State({}, "deepcopy", {}))


def test_a_refused_state_leaves_the_environment_as_it_was(hopper):
    env, codec = hopper
    before = codec.get_state(env)
    with pytest.raises(ValueError):
        codec.set_state(env, State(before.arrays, "mujoco", {"mujoco": "0"}))
    assert codec.get_state(env) == before
    assert "reset" not in vars(env.unwrapped)


def test_randomised_masses_travel_with_the_state(hopper):
    env, codec = hopper
    model = env.unwrapped.model
    normal = model.body_mass.copy()
    model.body_mass[1] *= 2
    heavy = codec.get_state(env)
    model.body_mass[:] = normal
    codec.set_state(env, heavy)
    assert model.body_mass[1] == 2 * normal[1]
    model.body_mass[:] = normal


def test_live_generators_can_run_on():
    env, codec = planted.Walk(), planted.WalkCodec()
    env.reset(seed=0)
    state = codec.get_state(env)

    def noise(**options):
        codec.set_state(env, state, **options)
        return env.step(1)[0][0]

    assert noise() == noise()
    assert noise(generators=False) != noise(generators=False)


def test_shared_references_and_later_attributes():
    env, codec = planted.Walk(), planted.WalkCodec()
    env.reset(seed=0)
    state = codec.get_state(env)  # before the first step: `last` does not exist yet
    env.step(1)
    codec.set_state(env, state)
    assert env.flag.mates[0] is env.flag
    assert env.chosen is env.flag.mates[1]
    assert env.last == 1  # newer than the state: not ours to delete


def test_classes_of_other_packages_cannot_be_named():
    env, codec = planted.Walk(), planted.WalkCodec()
    env.reset(seed=0)
    state = codec.get_state(env)
    text = state.arrays["attributes"].tobytes().replace(b"tests.codecs.planted:Thing", b"subprocess:Popen")
    evil = state.replace(attributes=np.frombuffer(text, dtype=np.uint8))
    with pytest.raises(ValueError, match="no package of this environment"):
        codec.set_state(env, evil)


def test_deepcopy_without_a_known_observation_says_what_to_do():
    class Blind(gym.Env):
        observation_space = gym.spaces.Box(0, 1, (1,))
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self._np_random, _ = seeding.np_random(seed)
            self.inner = 0.5
            return np.array([self.inner], dtype=np.float32), {}

    env = Blind()
    env.reset(seed=0)
    state = codec_for(env).get_state(env)
    with pytest.raises(ValueError, match=r"DeepcopyCodec\(observe=lambda env: \.\.\.\)"):
        codec_for(env).set_state(env, state)
    seen, _ = DeepcopyCodec(observe=lambda env: np.array([env.inner], np.float32)).set_state(env, state)
    assert seen == np.float32(0.5)


def test_deepcopy_counters_begin_anew():
    """The two examples of the class's docstring."""

    class Walk(gym.Env):
        observation_space = gym.spaces.Box(-9, 9, (2,))
        action_space = gym.spaces.Discrete(2)
        x, y, t = 3, 4, 6

    env = Walk()
    seen = lambda env: np.array([env.x, env.y], np.float32)  # noqa: E731
    for counters, t in (((), 6), (["t"], 0)):
        env.x, env.y, env.t = 3, 4, 6
        codec = DeepcopyCodec(observe=seen, counters=counters)
        state = codec.get_state(env)
        env.x = env.y = env.t = 1
        assert codec.set_state(env, state)[0].tolist() == [3, 4]
        assert (env.x, env.y, env.t) == (3, 4, t)
    with pytest.raises(ValueError, match="Walk has no attribute 'clock'"):
        DeepcopyCodec(observe=seen, counters=["clock"]).get_state(env)


def test_minigrid_arrays_can_be_edited_by_a_batch_simulator():
    env = gym.make("MiniGrid-DoorKey-6x6-v0")
    env.reset(seed=1)
    codec, base = codec_for(env), env.unwrapped
    state = codec.get_state(env)
    key = next(i for i, thing in enumerate(base.grid.grid) if thing is not None and thing.type == "key")
    grid = state.arrays["grid"].copy()
    column, row = key % base.width, key // base.width
    carried, grid[column, row] = grid[column, row].copy(), (1, 0, 0)
    observation, _ = codec.set_state(env, state.replace(grid=grid, carrying=carried))
    assert base.carrying.type == "key"
    assert base.grid.grid[key] is None
    assert base.step_count == 0
    assert tuple(observation["image"][3, 6]) == tuple(carried)
    bigger = gym.make("MiniGrid-DoorKey-8x8-v0")
    bigger.reset(seed=0)
    with pytest.raises(ValueError, match="grid of 6 x 6, and DoorKeyEnv one of 8 x 8"):
        codec.set_state(bigger, state)
