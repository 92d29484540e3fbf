"""The picture: what it shows is what the records say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.curriculum.picture import _draw_moves, context_order, heat_map, level_shares, picture, success_by_window
from scout_rl.records.tables import read_records
from scout_rl.rules.cells import Event


def run(folder, rule, windows, n_contexts=5):
    curriculum = Curriculum(rule, n_contexts, 5, log_dir=folder, window=16)
    for _ in range(windows):
        cells = curriculum.assign(16)
        curriculum.report(cells, (cells.context + cells.level) >= 3)
    return read_records(folder)


def test_the_heat_map_is_the_frontier(tmp_path):
    records = run(tmp_path, rules.Scout(n_min=2), 90)
    levels, width = heat_map(records)
    assert width == 1
    assert levels.astype(int).tolist() == records.frontier.tolist()


def test_a_long_run_shows_the_frontier_after_each_column_s_last_window(tmp_path):
    records = run(tmp_path, rules.Scout(n_min=2), 905)
    levels, width = heat_map(records)
    assert width == 3  # 905 windows in at most 400 columns
    last = [*range(2, 905, 3), 904]
    assert levels.astype(int).tolist() == records.frontier[last].tolist()


def test_without_a_frontier_it_is_the_mean_level_trained(tmp_path):
    records = run(tmp_path, rules.Random(), 2)
    levels, width = heat_map(records)
    assert width == 1
    first = records.windows[0]
    for context in range(5):
        trained = [level for x, level in zip(first["context"], first["level"], strict=True) if x == context]
        assert levels[0, context] == pytest.approx(np.mean(trained)) if trained else np.isnan(levels[0, context])


def test_the_furthest_context_comes_first():
    levels = np.array([[4, 4, 4, np.nan], [3, 4, 1, 2], [0, 4, 0, np.nan]])
    # 2 and 0 are at level 0, and 2 was there sooner; 3 was last trained at 2; 1 never moved
    assert context_order(levels, []).tolist() == [2, 0, 3, 1]
    tie = np.array([[4, 4], [4, 4]])
    assert context_order(tie, [Event(0, 0, "advance", 4, 3, 0.9, 20)]).tolist() == [1, 0]


def test_success_is_averaged_over_groups_of_windows(tmp_path):
    records = run(tmp_path, rules.Random(), 5)
    overall, at_target = success_by_window(records, 2)
    pooled = records.windows[2]["success"] + records.windows[3]["success"]
    levels = records.windows[2]["level"] + records.windows[3]["level"]
    assert overall[1] == pytest.approx(np.mean(pooled))
    assert at_target[1] == pytest.approx(np.mean([s for s, level in zip(pooled, levels, strict=True) if level == 0]))
    assert len(overall) == 3


def test_rollouts_are_counted_by_the_level_that_they_start_from(tmp_path):
    """Of `ability`, whose frontier is not where it trains."""
    records = run(tmp_path, rules.Ability(), 5)
    shares = level_shares(records, 2)
    levels = records.windows[2]["level"] + records.windows[3]["level"]
    assert shares[1] == pytest.approx(np.bincount(levels, minlength=5) / 32)
    assert shares[2] == pytest.approx(np.bincount(records.windows[4]["level"], minlength=5) / 16)
    assert len(set(levels)) > 1


@pytest.mark.parametrize(("rule", "names"), [(rules.Ability(), 2), (rules.Scout(n_min=2, N_stale=1), 3)])
def test_only_moves_that_happened_are_named(tmp_path, rule, names):
    """`ability` never probes; SCOUT does where it stalls."""
    from matplotlib.figure import Figure

    curriculum = Curriculum(rule, 5, 5, log_dir=tmp_path, window=16)
    rng = np.random.default_rng(0)
    for _ in range(120):
        cells = curriculum.assign(16)
        curriculum.report(cells, rng.random(16) < 0.5)
    axes = Figure().subplots()
    _draw_moves(axes, read_records(tmp_path))
    texts = [text.get_text().split(" (")[0] for text in axes.get_legend().get_texts()]
    assert texts == ["advance", "retreat", "antistall"][:names]


@pytest.mark.parametrize(("rule", "n"), [(rules.Scout(n_min=2), 5), (rules.Random(), 60), (rules.Scout(n_min=2), 60)])
def test_it_draws(tmp_path, rule, n):
    run(tmp_path, rule, 60, n)
    out = picture(tmp_path, tmp_path / "new" / "picture.png")
    from matplotlib.image import imread

    image = imread(out)
    assert image.shape[:2] == (1380, 1500)
    colours = (255 * image[..., :3]).astype(np.uint32) @ np.array([1, 256, 256**2], np.uint32)
    assert len(np.unique(colours)) > 20, "not an empty page"


def test_it_goes_beside_the_records_unless_told(tmp_path):
    run(tmp_path, rules.Scout(), 2)
    assert picture(tmp_path) == tmp_path / "frontier.png"


def test_nothing_to_draw_is_said(tmp_path):
    with pytest.raises(ValueError, match="holds no records"):
        picture(tmp_path)
    Curriculum(rules.Scout(), 5, 5, log_dir=tmp_path)
    with pytest.raises(ValueError, match="no closed window"):
        picture(tmp_path)


def test_importing_it_does_not_import_matplotlib():
    code = "import sys, scout_rl.curriculum.picture; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
