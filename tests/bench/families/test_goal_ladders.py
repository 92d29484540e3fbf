"""The ladders of Fetch and PointMaze: valid, ordered, grasped, and refused where they are not."""

import numpy as np
import pytest

from scout_rl.bench.families import family
from scout_rl.bench.families.fetch import solver as fetch_solver
from scout_rl.bench.families.fetch.contexts import TABLE_Z, is_on_table
from scout_rl.bench.families.pointmaze.maze import way_length
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.ladders.ladder import level_fractions
from tests.bench.families.goal_families import FETCH, MAZES, flat, simulator_of


def check(key, contexts, ladder, source):
    """0% invalid, every cell solved in time, and the remaining steps never rise with the level."""
    bench_family = family(SETTINGS[key].family)
    report = bench_family.check_ladder(contexts, ladder, by_hand=source == "manual")
    assert report.ok, str(report)
    starts, n_levels = flat(ladder), ladder["goal"].shape[1]
    n = len(starts["goal"])
    parts = [{name: array[i : i + 100] for name, array in starts.items()} for i in range(0, n, 100)]
    remaining = np.array([len(s.actions) for part in parts for s in bench_family.solutions(part)]).reshape(-1, n_levels)
    rise = np.diff(remaining, axis=1).max(axis=1)
    falls = rise <= 0
    print(
        f"{key} {source}: {report}; solved {n} of {n} cells; remaining steps by level "
        f"{remaining.mean(axis=0).round(1).tolist()}, never rising in {falls.mean():.0%} of contexts"
    )
    # With more than five levels neighbours can lie closer than one step of the solver: one step up is rounding.
    assert falls.all() if n_levels == 5 else (rise <= 1).all() and falls.mean() > 0.9
    assert (ladder["step_count"] == 0).all()


@pytest.mark.parametrize("key", ["fetch-conflict", *MAZES])
@pytest.mark.parametrize("source", ["manual", "solver"])
def test_ladders_are_valid_and_ordered(ladder_of, key, source):
    check(key, *ladder_of(key, source), source)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*FETCH, *MAZES])
@pytest.mark.parametrize("source", ["manual", "solver"])
@pytest.mark.parametrize("n_levels", [5, 9, 13])
def test_every_context_of_every_bank(ladder_of, key, source, n_levels):
    check(key, *ladder_of(key, source, SETTINGS[key].n_train, n_levels), source)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*FETCH, *MAZES])
def test_the_solver_solves_held_out_contexts_too(bank_of, key):
    bench_family, contexts = family(SETTINGS[key].family), bank_of(key).held_out.contexts
    assert len(bench_family.solutions(bench_family.target_starts(contexts))) == 50


def test_fetch_grasps_hold_and_lie_at_their_fraction(ladder_of):
    contexts, ladder = ladder_of("fetch-conflict")
    simulator, on_table = simulator_of("fetch-conflict"), is_on_table(contexts)
    assert on_table.sum() == 5
    state = simulator.reset_to(flat(ladder))
    seen = simulator.observe(state)
    n_cells = len(seen["achieved_goal"])
    place = seen["achieved_goal"].reshape(-1, 5, 3)
    grasped = fetch_solver.is_grasped(seen["observation"]).reshape(-1, 5)
    assert not grasped[on_table].any()
    assert not grasped[:, 0].any()
    assert grasped[~on_table, 1:].all()
    for _ in range(10):
        state, result = simulator.step(state, np.tile([0.0, 0.0, 0.0, -1.0], (n_cells, 1)))
    held = fetch_solver.is_grasped(result.observation["observation"]).reshape(-1, 5)
    np.testing.assert_array_equal(held[~on_table], grasped[~on_table])

    start = np.column_stack([contexts["object_xy"], np.full(10, TABLE_Z)])
    for level, fraction in enumerate(level_fractions(5)):
        expected = start + fraction * (contexts["goal"] - start)
        off = np.linalg.norm(place[:, level] - expected, axis=1)
        # The grasp itself moves the object by millimetres, and a carried one stops up to 1 cm short.
        assert (off[on_table] < 1e-3).all()
        assert (off[~on_table] < 0.02).all(), off


def test_pointmaze_starts_lie_at_their_share_of_the_shortest_way(ladder_of):
    contexts, ladder = ladder_of("pointmaze-large")
    maze = simulator_of("pointmaze-large").maze
    for x, goal in enumerate(contexts["goal"]):
        left = [way_length(maze.way(p, goal)) for p in ladder["qpos"][x]]
        np.testing.assert_allclose(left, left[0] * (1 - np.array(level_fractions(5))), atol=1e-6)
    assert (ladder["qvel"] == 0).all()


def test_a_way_is_no_longer_than_any_other_found_on_a_fine_grid():
    """Against Dijkstra over a grid of points 0.1 apart, which can only find longer ways."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    maze = simulator_of("pointmaze-medium").maze
    x, y = np.meshgrid(np.arange(-3.5, 3.51, 0.1), np.arange(-3.5, 3.51, 0.1))
    points = np.column_stack([x.ravel(), y.ravel()]).round(6)
    points = points[maze.is_free(points)]
    gap = np.linalg.norm(points[:, None] - points, axis=-1)
    a, b = np.nonzero((gap < 0.3) & (gap > 0))
    clear = maze.sees(points[a], points[b])
    graph = csr_matrix((gap[a, b][clear], (a[clear], b[clear])), shape=gap.shape)
    rows = np.random.default_rng(0).choice(len(points), 12, replace=False)
    on_grid = dijkstra(graph, indices=rows)[:, rows]
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            if i != j:
                way = maze.way(points[first], points[second])
                assert maze.sees(way[:-1], way[1:]).all()
                assert way_length(way) <= on_grid[i, j] + 1e-9
                assert way_length(way) >= on_grid[i, j] * 0.95


def test_the_validator_says_what_is_wrong(ladder_of):
    bench_family = family("fetch")
    every, whole = ladder_of("fetch-conflict")
    contexts = {name: array[-2:] for name, array in every.items()}
    ladder = {name: array[-2:] for name, array in whole.items()}

    def reasons(**changed):
        report = bench_family.check_ladder(contexts, {**ladder, **changed}, by_hand=True)
        return report.invalid_rate, {problem.reason for problem in report.problems}

    def as_starts(**changed):
        """The changed ladder with derived arrays that agree."""
        made = bench_family.as_starts(flat({**ladder, **changed}))
        return {name: array.reshape(2, 5, *array.shape[1:]) for name, array in made.items()}

    assert reasons() == (0.0, set())
    # Controls left out of the restore are those of the episode before: here one with an open gripper.
    left_out = ladder["ctrl"].copy()
    left_out[:, 1:] = 1.0
    assert reasons(ctrl=left_out) == (0.8, {"does not hold: dropped after 1 settling steps"})
    # A mocap target left out is the model's: it drags the arm away.
    mocap = np.repeat(ladder["mocap_pos"][:, :1], 5, axis=1)
    rate, messages = reasons(**as_starts(mocap_pos=mocap))
    assert rate == 0.8
    assert "does not hold: dropped after 1 settling steps" in messages
    opened = ladder["qpos"].copy()
    opened[:, 2, 13:15] = 0.05
    assert reasons(qpos=opened) == (0.2, {"derived arrays that disagree with qpos"})
    assert reasons(**as_starts(qpos=opened)) == (0.2, {"does not hold at the start"})
    broken = ladder["qvel"].copy()
    broken[0, 1, 0] = np.nan
    assert reasons(qvel=broken) == (0.1, {"not finite"})
    far = ladder["qpos"].copy()
    far[0, 0, 15] += 0.5
    assert reasons(qpos=far) == (0.1, {"derived arrays that disagree with qpos"})
    assert reasons(**as_starts(qpos=far)) == (0.1, {"out of bounds"})
    solved = ladder["goal"].copy()
    solved[0] = np.append(contexts["object_xy"][0], TABLE_Z)
    assert "a level-0 start that is already a success" in reasons(goal=solved)[1]


def test_assisted_starts_that_are_a_success_are_counted(ladder_of):
    contexts, ladder = ladder_of("fetch-conflict")
    report = family("fetch").check_ladder(contexts, ladder, by_hand=True)
    state = simulator_of("fetch-conflict").reset_to(flat(ladder))
    n = int(simulator_of("fetch-conflict").is_success(state).sum())
    assert report.warnings == (f"{n} of 40 assisted starts are already a success",)
    assert 8 <= n <= 20


def test_level_fractions():
    assert level_fractions(5) == (0.0, 0.25, 0.5, 0.75, 0.9)
    assert set(level_fractions(5)) <= set(level_fractions(9)) <= {*level_fractions(9)}
    np.testing.assert_allclose(level_fractions(13)[::3], level_fractions(5))
    with pytest.raises(ValueError, match="at least two levels"):
        level_fractions(1)
