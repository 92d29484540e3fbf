"""The picture of a setting's ladder: rendered by the stock environment, or sketched."""

import importlib

import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.ladders.picture import draw_ladder
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.ladders.picture import NO_GL, mujoco_renders

contract = importlib.import_module("scout_rl.bench.families.family")
MUJOCO = ("fetch-conflict-small", "metaworld-conflict-small")


def colours(path):
    from PIL import Image

    return len(np.unique(np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3), axis=0))


def draw(key, path):
    """Two contexts of two groups at three levels; returns the number of colours."""
    setting = SETTINGS[key]
    bench_family, contexts = family(setting.family), load_bank(setting).train.contexts
    contexts = {name: array[[0, -1]] for name, array in contexts.items()}
    ladder = bench_family.solver_ladder(contexts, 3)
    draw_ladder(bench_family, setting, contexts, ladder, path, rows="ab", captions=[["x"] * 3] * 2, title=key)
    assert path.stat().st_size < 200_000
    return colours(path)


@pytest.mark.parametrize("key", ["multiroom-small", "pointmaze-medium-small"])
def test_drawn_without_gl(key, tmp_path):
    assert draw(key, tmp_path / "cells.png") > 20


@pytest.mark.parametrize("key", MUJOCO)
def test_sketched_with_a_reason_where_there_is_no_offscreen_gl(key, tmp_path, monkeypatch):
    monkeypatch.setattr(contract, "mujoco_renders", lambda: False)
    assert family(SETTINGS[key].family).why_sketched() == f"{NO_GL}: the cells are sketched from the side."
    assert draw(key, tmp_path / "cells.png") > 5


@pytest.mark.skipif(not mujoco_renders(), reason=NO_GL)
@pytest.mark.parametrize("key", [MUJOCO[0], pytest.param(MUJOCO[1], marks=pytest.mark.slow)])
def test_rendered(key, tmp_path):
    assert draw(key, tmp_path / "cells.png") > 100
