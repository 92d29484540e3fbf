"""Arrays that share memory do so after a restore: writes into the original and the restored one never differ."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl.codecs import State, codec_for
from scout_rl.codecs.deepcopy import DeepcopyCodec
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
    found = [owner]
    for _ in range(draw(st.integers(1, 6))):
        source = draw(st.sampled_from(found))
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
            view = np.lib.stride_tricks.sliding_window_view(source, 2, axis=0, writeable=source.flags.writeable)
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
        found.append(view)
    kept = draw(st.lists(st.sampled_from(range(len(found))), min_size=3, max_size=6))
    return [found[i] for i in kept]


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


@settings(max_examples=400, deadline=None)
@given(memories(), st.data())
def test_what_is_written_through_one_view_is_seen_through_the_others(arrays, data):
    for array in arrays:
        write(data.draw, array)(array)
    original, codec = Memory().hold(arrays), DeepcopyCodec()
    left_out = codec.left_out(original)
    if left_out:  # views with other fields than their owner's: the one thing that is refused
        assert all("a view with fields" in text for text in left_out)
        return
    state = codec.get_state(original)
    restored = Memory().hold([np.zeros(1)] * 3)
    codec.set_state(restored, state)
    assert codec.get_state(restored) == state  # the relation is read back, too
    same(restored.arrays(), original.arrays())
    assert not any(np.shares_memory(a, b) for a in original.arrays() for b in restored.arrays())
    for _ in range(4):
        index = data.draw(st.integers(0, len(arrays) - 1))
        change = write(data.draw, original.arrays()[index])
        change(original.arrays()[index])
        change(restored.arrays()[index])
        same(restored.arrays(), original.arrays())


def test_a_stored_state_keeps_the_relation(tmp_path):
    env = planted.Board()
    env.reset(seed=0)
    env.step(1)
    codec_for(env).get_state(env).save(tmp_path / "s.npz")
    other = planted.Board()
    other.reset(seed=1)
    codec_for(other).set_state(other, State.load(tmp_path / "s.npz"))
    other.flat[8] = 7
    assert other.board[2, 2] == 7
    assert other.board[0, 1] == 1


def test_memory_order_is_kept():
    """A view that the environment takes anew at every step must stay a view."""
    env = Memory().hold([np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2), np.zeros((3, 2), order="F"), np.ones(2)])
    codec = DeepcopyCodec()
    strides = [array.strides for array in env.arrays()]
    codec.set_state(env, codec.get_state(env))
    assert [array.strides for array in env.arrays()] == strides
    env.others[0].ravel(order="F")[1] = 5
    assert env.others[0][1, 0] == 5


def test_an_edited_array_wins_wherever_it_is_seen():
    """The memory has two names; the one that was edited counts."""
    env = planted.Board()
    env.reset(seed=0)
    codec = codec_for(env)
    state = codec.get_state(env)
    codec.set_state(env, state.replace(**{"attributes/flat": np.arange(9.0)}))
    assert env.board[2, 1] == env.flat[7] == 7
    codec.set_state(env, state.replace(**{"attributes/board": np.full((3, 3), 4.0)}))
    assert env.board[2, 1] == env.flat[7] == 4
    with pytest.raises(ValueError, match=r"flat lies in the memory of another array: its shape cannot become \(3,\)"):
        codec.set_state(env, state.replace(**{"attributes/flat": np.zeros(3)}))


def test_a_damaged_place_reaches_no_other_memory():
    env = planted.Board()
    env.reset(seed=0)
    state = codec_for(env).get_state(env)
    text = state.arrays["attributes"].tobytes().replace(b"[9],[8]", b"[9],[80000]")
    with pytest.raises(ValueError, match="strides"):
        codec_for(env).set_state(env, state.replace(attributes=np.frombuffer(text, np.uint8)))


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


def test_shared_memory_under_a_goal_name_keeps_the_goal():
    """Meta-World's target is a view of its task vector: it is a view again, and still the state's goal."""
    env = planted.metaworld_task("pick-place-v3")
    env.reset(seed=0)
    codec = codec_for(env)
    state = codec.get_state(env)
    np.testing.assert_array_equal(codec.goal(state), env._target_pos)
    assert np.shares_memory(env._target_pos, env._last_rand_vec)
    env.reset(seed=1)
    codec.set_state(env, state)
    assert np.shares_memory(env._target_pos, env._last_rand_vec)
    np.testing.assert_array_equal(codec.goal(state), env._target_pos)
