"""One colour per level, with one meaning, in every picture: dark is the target start, yellow the easiest."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

import scout_rl
from scout_rl.curriculum.picture import draw_levels, level_bar
from scout_rl.records.level_colours import EASIEST, STOPS, TARGET, level_colours, level_names
from scout_rl.report.measure.comparison import scores
from scout_rl.report.show.figures import draw_all
from scout_rl.report.show.page import render
from tests.report.planted import blocks_of, curve, written

SRC = Path(scout_rl.__file__).parent
AT = np.arange(0, 121, 20)


def lightness(colour):
    return float(np.dot(np.power(to_rgb(colour), 2.2), (0.2126, 0.7152, 0.0722)))


def test_dark_is_the_target_start_and_yellow_the_easiest():
    assert level_colours(5) == [to_hex(colormaps["viridis"](place)) for place in np.linspace(0, 1, 5)]
    for n in (2, 3, 5, 15):
        light = [lightness(colour) for colour in level_colours(n)]
        assert (len(light), light) == (n, sorted(light))
        assert (level_colours(n)[0], level_colours(n)[-1]) == ("#440154", "#fde725")
    assert level_colours(1) == ["#440154"]


def test_legends_say_what_the_ends_are():
    assert level_names(3) == ["0: target start (no help)", "1", "2: easiest start (most help)"]
    assert level_names(1) == ["0: target start (no help)"]


def test_the_map_has_these_colours_and_names():
    """Of `scout picture` and of `scout simulate`."""
    figure = Figure()
    axes = figure.subplots()
    image = draw_levels(axes, np.array([[0, 1, 4], [4, 3, 2]]), 5, (0, 2))
    drawn = [[to_hex(rgba) for rgba in row] for row in image.cmap(image.norm(np.array([[0, 1, 2, 3, 4]])))]
    assert drawn == [level_colours(5)]
    labels = [text.get_text() for text in level_bar(figure, image, 5, ax=axes).ax.get_yticklabels()]
    assert labels == level_names(5)


def test_the_report_has_these_colours_and_names(tmp_path):
    (block,) = blocks_of([written(tmp_path, "multiroom", "scout", 40, {"all": curve(60, at=AT)})])
    levels = next(figure for figure in draw_all(block, scores(block)) if figure.name == "levels").drawn
    bands = levels.axes[0].collections
    assert [to_hex(band.get_facecolor()[0]) for band in bands] == level_colours(len(bands))
    (legend,) = levels.legends
    assert {TARGET, EASIEST} <= {text.get_text().split(": ")[-1] for text in legend.get_texts()}


def test_the_page_s_script_takes_its_colours_from_here():
    page = render("t", "s", [], [], [])
    payload = json.loads(re.search(r'id="runs">(.*?)</script>', page, re.S)[1])
    assert payload["level"] == {"stops": [list(stop) for stop in STOPS], "target": TARGET, "easiest": EASIEST}
    scripts = {path.name: path.read_text() for path in SRC.rglob("*.js")}
    assert "new Levels(data.level)" in scripts["page.js"]
    assert "new Levels(this.meta.level)" in scripts["run.js"]
    for name, script in scripts.items():
        assert not re.search(r"\[\[\d+, \d+, \d+\]", script), f"{name} has a scale of its own"


@pytest.mark.parametrize("name", ["colormaps", "viridis", "cividis", "get_cmap"])
def test_nobody_has_a_colour_map_of_their_own(name):
    using = {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if name in path.read_text()}
    assert using <= {"records/level_colours.py"}
