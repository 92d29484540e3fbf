"""How rules are told apart in the figures, and that all of their names can be read."""

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.report.measure.comparison import scores
from scout_rl.report.show.figures import draw_all, look
from tests.report.planted import blocks_of, curve, written


def test_no_two_rules_look_alike_and_scout_stands_out():
    """With all rules in one figure: unlike in colour and dash, and most in the marker too."""
    looks = [look(i) for i in range(len(rules.RULES))]
    assert len(looks) == 20
    assert len({(one.colour, one.dash) for one in looks}) == len(looks)
    assert all(one.colour != looks[0].colour and one.dash != looks[0].dash for one in looks[1:])
    assert len({one.marker for one in looks[:13]}) == 13


SHORT = [{"rule": key} for key in ("scout", "anneal", "random", "target")]
LONG = [{"constants": {"n_min": n, "N_stale": stale, "tau_low": 0.125}} for n, stale in ((5, 0), (5, 4), (15, 0))]


@pytest.mark.parametrize("runs", [SHORT, LONG, [{"rule": key} for key in rules.RULES]], ids=["short", "long", "all"])
def test_every_name_of_the_legend_is_inside_the_figure(tmp_path, runs):
    groups = {"all": curve(60, at=np.arange(0, 121, 20))}
    summaries = [written(tmp_path, "multiroom", run.pop("rule", "scout"), 40, groups, **run) for run in map(dict, runs)]
    (block,) = blocks_of(summaries)
    drawn = next(f for f in draw_all(block, scores(block)) if f.name == "curves").drawn
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    assert len(legend.get_texts()) == len(runs)
    for text in legend.get_texts():
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= drawn.bbox.x1, f"{text.get_text()} is cut off"
