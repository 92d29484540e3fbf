import numpy as np
import pytest

from scout_rl.bench.families import cell_grid
from scout_rl.bench.families.fetch import picture as fetch_picture
from scout_rl.bench.families.pointmaze import picture as maze_picture
from scout_rl.ladders.picture import mujoco_renders


def colours(path):
    from PIL import Image

    return len(np.unique(np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3), axis=0))


def test_the_maze_from_above(ladder_of, tmp_path):
    maze_picture.draw(tmp_path / "maze.png", ladder_of("pointmaze-medium")[1], contexts=(0, 9))
    assert colours(tmp_path / "maze.png") > 20
    assert (tmp_path / "maze.png").stat().st_size < 200_000


def test_fetch_without_offscreen_gl_is_sketched_with_a_reason(ladder_of, tmp_path, monkeypatch):
    monkeypatch.setattr(cell_grid, "mujoco_renders", lambda: False)
    said = []
    assert not fetch_picture.draw(tmp_path / "fetch.png", ladder_of("fetch-conflict")[1], (0, 9), said.append)
    assert said == [
        "MuJoCo finds no offscreen GL here (try MUJOCO_GL=osmesa or egl): the cells are sketched from the side."
    ]
    assert colours(tmp_path / "fetch.png") > 5


def test_fetch_rendered(ladder_of, tmp_path):
    if not mujoco_renders():
        pytest.skip("MuJoCo finds no offscreen GL here (try MUJOCO_GL=osmesa or egl)")
    assert fetch_picture.draw(tmp_path / "fetch.png", ladder_of("fetch-conflict")[1], (0, 9))
    assert colours(tmp_path / "fetch.png") > 100
    assert (tmp_path / "fetch.png").stat().st_size < 200_000
