"""Ladders: built, drawn from, saved, stacked, drawn as a picture."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import State
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.picture import draw_rungs
from scout_rl.ladders.recorder import Recorder
from scout_rl.ladders.sources import Sources
from tests.codecs import planted
from tests.ladders.trajectories import drawn


def number(value: float) -> State:
    return State({"qpos": np.array([value]), "fixed": np.zeros(2)}, "mujoco", {"mujoco": "3.3.0"})


def rungs(ladder: Ladder, context: int = 0) -> list[float]:
    return [float(cell[0].arrays["qpos"][0]) for cell in ladder.cells[context]]


def test_time_progress_by_hand():
    # First success at state 20: progress t / 20, so .25, .5, .75, .9 are states 5, 10, 15, 18.
    ladder = Ladder.from_trajectories([drawn(range(26), success_at=20)])
    assert rungs(ladder) == [0, 5, 10, 15, 18]
    assert ladder.fractions == (0, 0.25, 0.5, 0.75, 0.9)
    assert (ladder.n_contexts, ladder.n_levels) == (1, 5)


def test_path_progress_by_hand():
    # The achieved goal stands still for 4 steps and then moves 1, 1, 1, 1 to the success at state 8:
    # path shares 0 0 0 0 0 .25 .5 .75 (1). 0.9 is nearest .75 of the states before the success.
    trajectory = drawn([0, 0, 0, 0, 0, 1, 2, 3, 4], success_at=8)
    assert rungs(Ladder.from_trajectories([trajectory], progress="path")) == [0, 5, 6, 7, 7]


def test_remaining_progress_by_hand():
    # Goal at 10. Distances 10 12 8 6 4 2 0: it first moves away. Gone: 0 -.2 .2 .4 .6 .8 (1).
    # .25 -> .2 (state 2); .5 -> .4, .6 tie, the earlier (state 3); .75 -> .8 (5); .9 -> .8 (5).
    trajectory = drawn([0, -2, 2, 4, 6, 8, 10], success_at=6, desired=np.array([10.0]))
    assert rungs(Ladder.from_trajectories([trajectory], progress="remaining")) == [0, 2, 3, 5, 5]


def test_progress_function_and_other_level_counts():
    trajectory = drawn(range(11), success_at=10)
    squared = Ladder.from_trajectories([trajectory], (0, 0.5, 1.0), lambda t: (np.arange(11) / 10) ** 2)
    assert rungs(squared) == [0, 7, 9]  # .49 is nearest .5; the success itself is no start
    for levels in (1, 9, 13):
        assert Ladder.from_trajectories([trajectory], np.linspace(0, 0.9, levels)).n_levels == levels


def test_levels_never_go_back_along_the_trajectory():
    # Progress falls again after state 2; level 2 (.3) may not start before level 1 (.6, state 2).
    trajectory = drawn(range(6), success_at=5)
    progress = np.array([0, 0.3, 0.6, 0.2, 0.7, 1.0])
    assert rungs(Ladder.from_trajectories([trajectory], (0, 0.6, 0.8), lambda t: progress)) == [0, 2, 4]


def test_several_trajectories_a_context_are_several_states_a_cell():
    group = [drawn(range(11), success_at=10), drawn(range(21), success_at=20)]
    ladder = Ladder.from_trajectories([group, group], (0, 0.5))
    assert [float(s.arrays["qpos"][0]) for s in ladder.states(1, 1)] == [5, 10]


@pytest.mark.parametrize(
    ("trajectory", "options", "message"),
    [
        (drawn(range(4), success_at=9), {}, "context 0 never succeeds"),
        (drawn(range(4), success_at=3), {"fractions": (0.1, 0.5)}, "must start at 0"),
        (drawn(range(4), success_at=3), {"fractions": (0, 0.5, 0.5)}, "must start at 0 and rise"),
        (drawn(range(4), success_at=3), {"progress": "tempo"}, "not 'tempo'"),
        (drawn(range(4), success_at=3), {"progress": "remaining"}, "context 0: .* desired goal"),
        (drawn([1, 1, 1, 1], success_at=3), {"progress": "path"}, "context 0: .* never moves"),
        (drawn(range(4), success_at=3), {"progress": lambda t: np.zeros(2)}, "4 finite numbers"),
    ],
)
def test_trajectories_that_give_no_ladder(trajectory, options, message):
    with pytest.raises(ValueError, match=message):
        Ladder.from_trajectories([trajectory], **options)


def test_draws_are_uniform_over_the_states_of_a_cell():
    ladder = Ladder.from_states([[number(0), [number(1), number(2), number(3)]]])
    generator = np.random.default_rng(0)
    observation = [float(ladder.draw(0, 1, generator).arrays["qpos"][0]) for _ in range(3000)]
    counts = [observation.count(v) for v in (1, 2, 3)]
    assert sum(counts) == 3000
    assert all(abs(c - 1000) < 120 for c in counts)  # 4.6 standard deviations
    assert ladder.draw(0, 0, generator) == number(0)


def test_wrong_shapes_and_cells_are_named():
    with pytest.raises(ValueError, match="context 1 has 1 levels, and context 0 has 2"):
        Ladder.from_states([[number(0), number(1)], [number(0)]])
    with pytest.raises(ValueError, match=r"cell \(0, 1\) has no state"):
        Ladder.from_states([[number(0), []]])
    with pytest.raises(ValueError, match="at least one context"):
        Ladder(())
    ladder = Ladder.from_states([[number(0)]])
    for cell in ((0, 1), (1, 0), (-1, 0)):
        with pytest.raises(ValueError, match="there is no cell"):
            ladder.states(*cell)


def test_stack_for_batch_simulators():
    ladder = Ladder.from_states([[number(10 * x + level) for level in range(3)] for x in range(2)])
    stacked = ladder.stack()
    np.testing.assert_array_equal(stacked["qpos"][..., 0], [[0, 1, 2], [10, 11, 12]])
    assert stacked["fixed"].shape == (2, 3, 2)
    pairs = Ladder.from_states([[[number(1), number(2)]]])
    assert pairs.stack()["qpos"].shape == (1, 1, 2, 1)
    ragged = Ladder.from_states([[number(1), [number(1), number(2)]]])
    with pytest.raises(ValueError, match=r"cells have \[1, 2\] states"):
        ragged.stack()
    odd = State({"qpos": np.zeros(2), "fixed": np.zeros(2)}, "mujoco", {})
    assert set(Ladder.from_states([[number(0), odd]]).stack()) == {"fixed"}


CELLS = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=3)))
def test_saved_and_loaded_a_ladder_is_equal(tmp_path_factory, cells):
    ladder = Ladder.from_states([[[number(v) for v in cell] for cell in levels] for levels in cells])
    path = tmp_path_factory.mktemp("ladder") / "l.npz"
    sha256 = ladder.save(path)
    loaded = Ladder.load(path, sha256)
    assert loaded.cells == ladder.cells
    assert loaded.sha256 == ladder.sha256 == sha256


def test_damaged_and_exchanged_ladders_are_refused(tmp_path):
    ladder = Ladder.from_trajectories([drawn(range(26), success_at=20)])
    path = tmp_path / "l.npz"
    sha256 = ladder.save(path)
    assert Ladder.load(path).fractions == ladder.fractions
    Ladder.from_states([[number(0)]]).save(path)
    with pytest.raises(ValueError, match=rf"holds ladder .*, not {sha256[:12]}"):
        Ladder.load(path, sha256)
    number(0).save(path)
    with pytest.raises(ValueError, match="holds no ladder"):
        Ladder.load(path)
    ladder.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"l\.npz is damaged"):
        Ladder.load(path)


def test_from_a_function_and_as_a_picture(tmp_path):
    env = gym.make("MiniGrid-Empty-Random-6x6-v0", render_mode="rgb_array")

    def reset_to(env, context, level):
        env.reset(seed=context)
        env.unwrapped.agent_pos, env.unwrapped.agent_dir = (1 + level, 1), 0

    ladder = Ladder.from_function(env, reset_to, n_contexts=2, n_levels=3, samples=2)
    np.testing.assert_array_equal(ladder.stack()["agent_pos"][1, :, 0], [[1, 1], [2, 1], [3, 1]])
    path = tmp_path / "rungs.png"
    assert draw_rungs(ladder, env, path) == 6
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    blind = gym.make("MiniGrid-Empty-Random-6x6-v0")
    assert draw_rungs(ladder, blind, path, contexts=[1]) == 0  # says why in each cell


def test_mujoco_without_offscreen_gl_is_sketched(tmp_path, monkeypatch):
    env = gym.make("Hopper-v5", render_mode="rgb_array")
    ladder = Ladder.from_function(env, lambda env, context, level: env.reset(seed=level), 1, 2)
    monkeypatch.setattr("scout_rl.ladders.picture.mujoco_renders", lambda: False)
    assert draw_rungs(ladder, env, tmp_path / "rungs.png") == 0
    assert (tmp_path / "rungs.png").stat().st_size > 3000


def test_ladders_and_their_parts_show_themselves_in_a_line():
    trajectory = drawn(range(26), success_at=20)
    ladder = Ladder.from_trajectories([trajectory, trajectory])
    assert repr(ladder) == "Ladder(2 contexts, 5 levels, 10 states of the mujoco codec)"
    state = ladder.states(0, 0)[0]
    assert repr(state) == f"State('mujoco', 1 arrays, 8 bytes, sha256 {state.sha256[:12]})"
    assert repr(trajectory) == "Trajectory(25 steps, first success at state 20, seed None)"


def pickled(ladder):
    return pickle.loads(pickle.dumps(ladder))


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy])
def test_a_copied_ladder_is_the_same_one(copied):
    sources = Sources(("policy", "trajectory"), (False, True), 5, ((2, 0),), (0, 1), (7, 9))
    cells = tuple(tuple((number(x), number(level)) for level in range(3)) for x in range(2))
    ladder = Ladder(cells, (0.0, 0.5, 0.9), sources)
    again = copied(ladder)
    assert again.sha256 == ladder.sha256  # of the copy first: it was not copied from the original
    assert again.sources == sources
    assert again.states(1, 2)[1] == ladder.states(1, 2)[1]
    with pytest.raises(ValueError, match="read-only"):
        again.states(0, 0)[0].arrays["qpos"][0] = 1
    with pytest.raises(TypeError):
        again.states(0, 0)[0].arrays["qpos"] = 1


@pytest.mark.parametrize("env", [planted.Board, planted.Dispatch])
def test_a_ladder_of_views_and_methods_can_be_finished_from_every_level(env):
    """The optimal policy, from every rung of its own demonstration, in as many steps as were left."""
    recorder = Recorder(env())
    recorder.reset(seed=0)
    while not recorder.trajectories:
        recorder.step(1)
    ladder = Ladder.from_trajectories(recorder.trajectories)
    left = []
    for level in range(ladder.n_levels):
        other = env()
        other.reset(seed=1)
        codec_for(other).set_state(other, ladder.states(0, level)[0])
        left.append(next(t for t in range(1, 30) if other.step(1)[-1]["is_success"]))
    assert left == sorted(left, reverse=True)
    assert left[0] == recorder.trajectories[0].first_success
    assert left[-1] < left[0]
