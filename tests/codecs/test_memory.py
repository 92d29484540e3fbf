"""What a file cannot hold is restored from memory exactly, views and methods too, or refused by name."""

from __future__ import annotations

import copy
import enum
import functools
import random
import types
import weakref

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl.codecs import codec_for, verify_codec
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.ladders.ladder import Ladder
from tests.codecs import planted


class Things:
    """An object of one's own that holds an array."""

    def __init__(self, held) -> None:
        self.held = held


class Memory(gym.Env):
    """Holds the arrays that it is given, in a list, an object and attributes."""

    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self._get_obs(), {}

    def _get_obs(self):
        return np.zeros(1, np.float32)

    def hold(self, arrays):
        self.first, self.others, self.thing = arrays[0], list(arrays[1:-1]), Things(arrays[-1])
        return self

    def arrays(self):
        return [self.first, *self.others, self.thing.held]


def a_slice(draw, length):
    start, stop = sorted((draw(st.integers(0, length)), draw(st.integers(0, length))))
    taken = slice(start, stop, draw(st.integers(1, 3)))
    return taken if draw(st.booleans()) else slice(*(lambda r: (r[-1], r[0] - 1 if r[0] else None, -r.step))(
        range(*taken.indices(length)))) if len(range(*taken.indices(length))) else taken  # fmt: skip


@st.composite
def memories(draw):
    """Arrays that are views of one array, of views of it, or of nothing; the first of them may not be among them."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dtype = draw(st.sampled_from([np.float64, np.int16, np.uint8, np.complex64, "<U2", "<M8[s]", "f4,i2"]))
    owner = np.zeros(shape, dtype, order=draw(st.sampled_from("CF")))
    arrays = [owner]
    for _ in range(draw(st.integers(1, 6))):
        source = draw(st.sampled_from(arrays))
        kind = draw(st.sampled_from(
            ["slice", "ravel", "transpose", "reshape", "windows", "bytes", "field", "broadcast", "copy", "diagonal"]
        ))  # fmt: skip
        if kind == "slice":
            view = source[tuple(a_slice(draw, n) for n in source.shape)]
        elif kind == "ravel":
            view = source.ravel(order=draw(st.sampled_from("CFK")))
        elif kind == "transpose":
            view = source.transpose(draw(st.permutations(range(source.ndim))))
        elif kind == "reshape":
            view = source.reshape(-1, 2) if source.size % 2 == 0 else source.reshape(-1)
        elif kind == "windows" and source.ndim and source.shape[0] > 1:
            view = np.lib.stride_tricks.sliding_window_view(source, 2, axis=0)
        elif kind == "bytes" and source.flags.c_contiguous and source.ndim:
            view = source.view(np.uint8) if source.size else source
        elif kind == "field" and source.dtype.names:
            view = source["f0"]
        elif kind == "broadcast":
            view = np.broadcast_to(source, (2, *source.shape))
        elif kind == "diagonal" and source.ndim == 2:
            view = source.diagonal()
        else:
            view = source.copy()
        arrays.append(view)
    kept = draw(st.lists(st.sampled_from(range(len(arrays))), min_size=3, max_size=6))
    return [arrays[i] for i in kept]


def write(draw, array):
    """Fresh bytes into some entries of an array."""
    if not (array.flags.writeable and array.size):
        return lambda twin: None
    where = tuple(draw(st.integers(0, n - 1)) for n in array.shape)
    raw = np.frombuffer(draw(st.binary(min_size=array.itemsize, max_size=array.itemsize)), np.uint8) % 100
    value = np.frombuffer(raw.tobytes(), array.dtype)[0]
    if draw(st.booleans()):
        return lambda twin: twin.__setitem__(where, value)
    return lambda twin: twin.__setitem__(where[:-1], value)


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
        assert a.flags.writeable or not b.flags.writeable


@settings(max_examples=300, deadline=None)
@given(memories(), st.data())
def test_what_is_written_through_one_view_is_seen_through_the_others(arrays, data):
    for array in arrays:
        write(data.draw, array)(array)
    original, codec = Memory().hold(arrays), DeepcopyCodec()
    state = codec.get_state(original)
    restored = Memory().hold([np.zeros(1)] * 3)
    codec.set_state(restored, state)
    same(restored.arrays(), original.arrays())
    assert not any(np.shares_memory(a, b) for a in original.arrays() for b in restored.arrays())
    for _ in range(4):
        index = data.draw(st.integers(0, len(arrays) - 1))
        change = write(data.draw, original.arrays()[index])
        change(original.arrays()[index])
        change(restored.arrays()[index])
        same(restored.arrays(), original.arrays())


def test_arrays_apart_in_one_memory_are_plain_data():
    env = Memory().hold([*np.split(np.arange(6.0), 3)])
    assert DeepcopyCodec().get_state(env).memory is None


def held(**attributes):
    """A robot's environment with these attributes, each made from the environment."""
    env = planted.Dispatch()
    env.reset(seed=0)
    for name, make in attributes.items():
        setattr(env, name, make(env))
    return env


def restored(env, disturb=lambda env: None):
    """The same environment after a restore of the state that it was in before ``disturb``."""
    codec = codec_for(env)
    state = codec.get_state(env)
    disturb(env)
    codec.set_state(env, state)
    return env


@pytest.mark.parametrize("where", ["here", "another"])
def test_methods_move_the_restored_robot(where):
    env = held()
    state = codec_for(env).get_state(env)
    env = env if where == "here" else held()
    codec_for(env).set_state(env, state)
    for move in env.moves:
        move()
    np.testing.assert_array_equal(env.robot.x[:3], [1, 1, 2])
    assert env.moves[0].__self__ is env.robot
    assert env.moves[2].args == (env.robot,)
    assert env.phase.__self__ is env


def test_which_method_an_attribute_names_is_state():
    env = held()
    env.step(0)
    assert env.phase == env._second
    restored(env, lambda env: env.step(0))
    assert env.phase == env._second


class Weather(enum.Enum):
    SUN = 1
    RAIN = 2


def test_objects_of_other_packages_and_kinds_are_copied():
    env = held(bag=lambda env: planted.Bag([1, 2]), sky=lambda env: Weather.SUN, dice=lambda env: random.Random(3))

    def disturb(env):
        env.bag.append(3)
        env.sky = Weather.RAIN
        env.dice.random()

    restored(env, disturb)
    assert env.bag == [1, 2]
    assert env.sky is Weather.SUN
    assert env.dice.random() == random.Random(3).random()


def test_a_method_of_a_generator_draws_from_the_restored_one():
    env = held(draw=lambda env: env.np_random.random)
    restored(env, lambda env: env.draw())
    twin = copy.deepcopy(env.np_random)
    assert [env.draw(), env.draw()] == [twin.random(), twin.random()]


def test_live_generators_can_run_on():
    env = held()
    codec = codec_for(env)
    state = codec.get_state(env)

    def noise(**options):
        codec.set_state(env, state, **options)
        return env.np_random.random()

    assert noise() == noise()
    assert noise(generators=False) != noise(generators=False)


def keep(value):
    return lambda: value


def thing_with(mate):
    thing = planted.Thing(0)
    thing.mates = [mate]
    return thing


REFUSED = {
    "a closure": lambda env: keep(env.robot),
    "a list in a closure": lambda env: keep([env.robot]),
    "a default": lambda env: lambda robot=env.robot: robot,
    "a keyword's default": lambda env: lambda *, x=env.robot.x: x,
    "a closure in a partial": lambda env: functools.partial(keep(env.robot), 3),
    "a method in a closure": lambda env: keep(env.robot.left),
    "a closure that is a method of the environment": lambda env: types.MethodType(keep(env.robot), env),
    "a view in a closure": lambda env: keep(env.robot.x[2:4]),
    "an object around it in a closure": lambda env: keep(thing_with(env.robot)),
    "a method of a list": lambda env: env.trace.append,
    "a method of Python's generator": lambda env: vars(env).setdefault("dice", random.Random(3)).random,
    "a weak reference": lambda env: weakref.ref(env.robot),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("place", [lambda f: f, lambda f: [f]], ids=["attribute", "list"])
def test_code_that_goes_on_to_hold_the_original_is_refused(case, place):
    env = held(hook=lambda env: place(REFUSED[case](env)))
    with pytest.raises(ValueError, match=r"no codec fits Dispatch: it holds hook \(.* that holds part of the state"):
        codec_for(env)
    with pytest.raises(ValueError, match=r"Dispatch holds hook \(.*, which cannot be copied: write a codec"):
        DeepcopyCodec().get_state(env)


def test_functions_that_hold_the_environment_or_constants_are_welcome():
    scale = 2.0
    env = held(hook=lambda env: lambda: env.robot.x, weigh=lambda env: lambda: scale * env.robot.x)
    restored(env, lambda env: env.step(0))
    env.step(0)
    assert env.hook()[0] == 1
    assert env.weigh()[0] == 2


@pytest.mark.parametrize("part", [slice(None), slice(2, 5)])
def test_memory_of_others_is_refused_by_name(part):
    torch = pytest.importorskip("torch")
    env = planted.Board()
    env.reset(seed=0)
    env.weights = torch.zeros(9).numpy()[part]
    with pytest.raises(ValueError, match=r"no codec fits Board: it holds weights \(an array in the memory of a torch"):
        codec_for(env)
    env.weights = env.weights.copy()
    assert codec_for(env).key == "deepcopy"


def test_python_generator_is_refused_by_name():
    env = held(script=lambda env: (i for i in range(3)))
    with pytest.raises(ValueError, match=r"it holds script \(generator: cannot pickle 'generator' object\)"):
        codec_for(env)


def test_a_state_in_memory_says_what_cannot_be_saved(tmp_path):
    env = planted.Board()
    env.reset(seed=0)
    state = codec_for(env).get_state(env)
    assert "and more in memory" in repr(state)
    words = (
        r"cannot be saved or hashed: it holds flat \(it shares memory with board\), which is kept in memory only; keep"
    )
    for use in (lambda: state.save(tmp_path / "s.npz"), lambda: state.sha256, lambda: state.replace(at=np.zeros(1)),
                lambda: Ladder.from_states([[state]]).save(tmp_path / "l.npz")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            use()
    assert list(tmp_path.iterdir()) == []
    assert state in [state]
    assert state != codec_for(env).get_state(env)
    assert len({state, copy.deepcopy(state)}) == 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda state: cloudpickle.loads(cloudpickle.dumps(state))])
def test_a_copied_state_restores_too(copied):
    env = held()
    state = copied(codec_for(env).get_state(env))
    env.step(0)
    codec_for(env).set_state(env, state)
    assert env.phase == env._first
    assert env.moves[0].__self__ is env.robot
    with pytest.raises(ValueError, match="this state is one of Dispatch, and the environment is a Board"):
        DeepcopyCodec().set_state(planted.Board(), state)


def test_views_stay_views_in_a_copied_state_and_are_not_sent_to_other_processes():
    env = planted.Board()
    env.reset(seed=0)
    state = codec_for(env).get_state(env)
    codec_for(env).set_state(env, copy.deepcopy(state))
    env.flat[8] = 7
    assert env.board[2, 2] == 7
    with pytest.raises(ValueError, match="arrays that share memory cannot go to another process"):
        cloudpickle.dumps(state)


def test_windows_into_the_simulator_stay_windows():
    """A MuJoCo environment's own view of its simulator is neither copied nor noted."""
    env = gym.make("Hopper-v5")
    env.reset(seed=0)
    env.unwrapped.place = env.unwrapped.data.qpos[1:3]
    codec = codec_for(env)
    state = codec.get_state(env)
    env.step(np.ones(3))
    codec.set_state(env, state)
    assert np.shares_memory(env.unwrapped.place, env.unwrapped.data.qpos)
    assert codec.left_out(env) == []


def test_views_in_a_mujoco_environment_are_restored_apart_and_noted():
    """Meta-World's target is a view of its task vector, and neither is written to."""
    verdict = verify_codec(functools.partial(planted.metaworld_task, "pick-place-v3"), new_process=False)
    assert verdict.ok, str(verdict)
    assert verdict.check("goal").result == "pass"
    assert "_target_pos (it shares memory with _last_rand_vec)" in verdict.check("not captured").text
