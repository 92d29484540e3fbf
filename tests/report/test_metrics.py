"""Metrics on curves and frontiers whose answer is worked out by hand."""

import numpy as np
import pytest

from scout_rl.report.measure import metrics as m


def test_auc_of_a_straight_line():
    at = np.array([0, 50, 100])
    assert m.auc(at, np.array([0.0, 0.5, 1.0]), (0, 100)) == pytest.approx(0.5)
    # Cut at 75: the curve is 0.75 there, the triangle's area 0.5 * 75 * 0.75, divided by 75.
    assert m.auc(at, np.array([0.0, 0.5, 1.0]), (0, 75)) == pytest.approx(0.375)
    # From 50 to 75: mean of 0.5 and 0.75.
    assert m.auc(at, np.array([0.0, 0.5, 1.0]), (50, 75)) == pytest.approx(0.625)


def test_the_common_window():
    assert m.common_window([np.array([0, 20, 100]), np.array([0, 50]), np.array([20, 80])]) == (20, 50)
    with pytest.raises(ValueError, match="share no window: one begins at 60, another ends at 40"):
        m.common_window([np.array([0, 40]), np.array([60, 80])])


@pytest.mark.parametrize(
    ("worst", "index"),
    [
        ([0, 0.9, 0.8, 0.8], 1),
        ([0, 0.9, 0.79, 0.9, 0.8, 0.85], 3),  # falls back once, so it does not count
        ([0, 0.89, 0.89, 0.89], None),
        ([0, 0, 0.95, 0.95], None),  # only one evaluation follows
        ([], None),
    ],
)
def test_windows_to_solve(worst, index):
    assert m.solved_at(np.array(worst)) == index


def test_the_interquartile_range_is_numpys():
    frontier = np.random.default_rng(0).integers(0, 9, (30, 37)).astype(np.int8)
    expected = np.subtract(*np.percentile(frontier, [75, 25], axis=1))
    assert m.interquartile_range(frontier) == pytest.approx(expected)
    assert m.interquartile_range(frontier[:, :1]) == pytest.approx(np.zeros(30))


def test_reversals_by_hand():
    # context 0: advance, retreat, advance (two turns); context 1: advance, antistall (none); context 2: one move
    context = np.array([0, 1, 0, 2, 1, 0], np.int32)
    kind = np.array([0, 0, 1, 1, 2, 0], np.int8)
    assert m.reversals(context, kind, 4).tolist() == [2, 0, 0, 0]


def test_retained_reproduces_the_papers_table():
    """tab:auto from its own columns: 1.21, 1.47, 1.05 (printed 1.06 from unrounded areas)."""
    assert m.retained([0.269], [0.225], [0.012]) == pytest.approx(1.21, abs=0.005)
    assert m.retained([0.541], [0.451], [0.259]) == pytest.approx(1.47, abs=0.005)
    assert m.retained([0.845], [0.801], [0.002]) == pytest.approx(1.06, abs=0.01)
    assert np.isnan(m.retained([0.5], [0.3], [0.3]))


def test_the_worst_group_is_the_minimum_within_a_seed():
    assert m.worst_curve({"a": np.array([0.1, 0.9]), "b": np.array([0.5, 0.4])}).tolist() == [0.1, 0.4]
