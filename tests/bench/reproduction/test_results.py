"""The generated part of docs/results.md: what the committed records give, and every sentence from numbers by hand."""

import io
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.bench.reproduction import results, results_figures
from scout_rl.bench.reproduction.marks import END, begin
from scout_rl.bench.reproduction.screens import profile, screens
from tests.bench.reproduction.marked import between
from tests.bench.reproduction.test_reproduction import without_simulators
from tests.report.planted import curve, written

ROOT = Path(__file__).parents[3]
LARGEST = 60_000
"""Bytes of a figure."""
CODE = (
    "from pathlib import Path\nfrom scout_rl.bench.reproduction.results import write\nwrite(*map(Path, sys.argv[1:]))"
)


def test_the_committed_part_is_what_the_records_give(tmp_path):
    """`make results` after a change of the records keeps it so."""
    page = tmp_path / "results.md"
    page.write_text((ROOT / "docs/results.md").read_text().replace("windows", "weeks"))
    without_simulators(CODE, tmp_path, page, ROOT / "results", ROOT / "results-one-rule")
    assert between(page, results.MARK) == between(ROOT / "docs/results.md", results.MARK), "run make results"
    assert "windows" in between(page, results.MARK)
    pictures = list((tmp_path / "images").iterdir())
    assert len(pictures) > 10
    for picture in pictures:
        assert (ROOT / "docs/images" / picture.name).exists(), "run make results"
        assert picture.stat().st_size < LARGEST
        assert f"(images/{picture.name})" in page.read_text()


def planted(folder, reached, *, windows=600, final=1.0, setting="planted"):
    """Runs of these rules, one per seed from 100 on: the worst group rises in a line to ``final`` at the window."""
    folder.mkdir(parents=True, exist_ok=True)
    at = np.arange(0, windows + 1, 20)
    return [
        written(
            folder,
            setting,
            rule,
            100 + i,
            {"all": curve(window, final=final, at=at)},
            windows=windows,
            constants=rules.make(rule).constants(),
        )
        for rule, ends in reached.items()
        for i, window in enumerate(ends)
    ]


FIRST_FIVE = {"ability": [40] * 5, "rfcl": [80] * 5}
OPEN = {"ability": [80, 40, 80, 40, 80], "rfcl": [40, 80, 40, 80, 40]}
"""Log ratios of log 2, three up, two down: mean 0.2 log 2, s.d. log(2) sqrt(1.2), half width 2.7764 s.d. / sqrt(5)."""


@pytest.mark.parametrize(
    ("reached", "standing", "text"),
    [
        (FIRST_FIVE, "first", "`ability` is first: 40 windows."),
        (
            {"ability": [80] * 5, "rfcl": [40] * 5},
            "later",
            "**`ability` is later than `rfcl` (40; ratio 2.00 [2.00, 2.00]):** it needs 80 windows.",
        ),
        (
            {"ability": [420] * 5, "rfcl": [400] * 5},  # 0.9 is reached at 378 and 360
            "level",
            "`rfcl` is first with 360 windows; `ability` is level with 380 (ratio 1.06 [1.06, 1.06]).",
        ),
        (
            OPEN,  # 40 * 2**(3/5) and 40 * 2**(2/5)
            "open",
            "**`ability` is not first:** it needs 61 windows; `rfcl` is first with 53 (ratio 1.15 [0.45, 2.95]). "
            "Open: `rfcl`.",
        ),
        (
            {"ability": [80] * 4, "rfcl": [40] * 4},
            "a first impression",
            "**`ability` is not first:** it needs 80 windows; `rfcl` is first with 40 (ratio 2.00). "
            "4 seeds: a first impression.",
        ),
        (
            {"ability": [40] * 5, "rfcl": [80]},
            "a first impression",
            "`ability` is first: 40 windows. 1 seed: a first impression.",
        ),
        ({"ability": [40] * 5, "rfcl": [40] * 5}, "first", "`ability` and `rfcl` are first: 40 windows."),
        ({"rfcl": [40] * 5}, "", "`ability` has no runs here yet. `rfcl` is first: 40 windows."),
        (
            FIRST_FIVE | {"group-frontier": [20] * 5},
            "first",
            "`ability` is first: 40 windows. `group-frontier`, which sees the labels, needs 20 "
            "(`ability` beside it: later).",
        ),
    ],
)
def test_the_sentence(tmp_path, reached, standing, text):
    (screen,) = screens(planted(tmp_path, reached))
    assert results.sentence(screen) == text
    assert screen.standing == standing


def test_where_no_rule_solves_it_the_end_counts(tmp_path):
    runs = planted(tmp_path, {"ability": [40] * 5}, final=0.5) + planted(tmp_path, {"target": [40] * 5}, final=0.75)
    (screen,) = screens(runs)
    assert results.sentence(screen) == (
        "**`ability` is not the best at the end** (0.50). No rule solves it; `target` is best at the end (0.75)."
    )
    assert screen.ratio("target") is None
    assert [line[2] for line in results.table(screen).rows] == ["never (0 of 5)"] * 2


def test_the_table_by_hand(tmp_path):
    """A line from 0 to 1 at window 40 of 600 has the area 1 - 20 / 600; the ratio's logs are all log(40 / 80)."""
    (screen,) = screens(planted(tmp_path, FIRST_FIVE))
    table = results.table(screen)
    assert table.column("windows to solve (solved)") == ["40 (5 of 5)", "80 (5 of 5)"]
    assert table.column("its AUC (median)") == ["0.97", "0.93"]
    assert table.column("ratio [95%]") == ["–", "0.50 [0.50, 0.50]"]
    assert table.column("`ability` is") == ["–", "earlier"]


def test_the_pooled_test_by_hand(tmp_path):
    """Five ratios of a half and five of a third have one sign: 2 of 2**10 changes of sign are as far from 0."""
    one = planted(tmp_path / "one", {"ability": [40] * 5, "rfcl": [80] * 5, "aced": [80] * 4}, setting="one")
    two = planted(tmp_path / "two", {"ability": [40] * 5, "rfcl": [120] * 5, "group-frontier": [40] * 5}, setting="two")
    lone = planted(tmp_path / "lone", {"rfcl": [20] * 5, "scout": [20] * 5}, setting="lone")
    text = results.summary(screens([*one, *two, *lone]), tmp_path)
    tested = text[text.index("**The test.**") :]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in tested.splitlines() if line.startswith("| `")]
    assert rows == [
        ["`group-frontier`", "5", "1.00", "0", "not tested: it sees the labels"],
        ["`rfcl`", "10", f"{6**-0.5:.2f}", "10", f"{2 / 2**10:.2g}"],
    ]


def test_the_profile_by_hand(tmp_path):
    runs = planted(tmp_path, {"ability": [40, 40, 40, 40, 80], "rfcl": [80, 80, 80, 80, 2000]})
    fastest = 40 * 2 ** (1 / 5)
    hopeless = planted(tmp_path / "hopeless", {"ability": [40] * 5, "scout": [40] * 5}, setting="hopeless", final=0.5)
    lines = profile(screens([*runs, *hopeless]))
    assert set(lines) == {"ability", "rfcl"}, "nobody solves the other setting"
    assert lines["ability"] == (1, pytest.approx([40 / fastest] * 4 + [80 / fastest]))
    assert lines["rfcl"] == (1, [pytest.approx(80 / fastest)] * 4 + [math.inf])
    axes = results_figures.profile(lines).drawn.axes[0]
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    assert ends == {"ability": 1.0, "rfcl": pytest.approx(0.8)}


def test_runs_of_different_budgets_are_not_compared_and_the_one_with_ability_is_shown(tmp_path):
    others = planted(tmp_path, {"rfcl": [40] * 5, "scout": [80] * 5}, windows=400)
    (screen,) = screens([*others, *planted(tmp_path, {"ability": [80] * 2})])
    assert list(screen.rows) == ["ability"]
    assert screen.rows["ability"].budget == 600


def test_every_rule_has_a_colour_of_its_own():
    assert len({look.colour for look in results_figures.LOOKS.values()}) == len(results_figures.SHOWN)


def test_few_seeds_are_lines_and_five_have_a_band(tmp_path):
    (screen,) = screens(planted(tmp_path, {"ability": [40] * 5, "rfcl": [80] * 2}))
    axes = results_figures.curves(screen.block, 5).drawn.axes[0]
    assert len(axes.collections) == 1
    assert len(axes.lines) == 1 + 2


def page_of(folder):
    page = folder / "results.md"
    page.write_text(f"# Page\n\n{begin(results.MARK)}\n{END}\n")
    results.write(folder, page, folder / "results")
    return page.read_text()


def test_a_new_record_of_ability_is_picked_up(tmp_path):
    """It is a committed record of `mixture` under the other rule's name: the ratio to it is 1."""
    for rule in ("mixture", "scout"):
        (tmp_path / f"results/fetch-conflict/{rule}").mkdir(parents=True)
        shutil.copy(ROOT / f"results/fetch-conflict/{rule}/100.npz", tmp_path / f"results/fetch-conflict/{rule}")
    assert "`ability` has no runs here yet. `mixture` is first" in page_of(tmp_path)
    with np.load(tmp_path / "results/fetch-conflict/mixture/100.npz") as file:
        arrays = dict(file)
    about = json.loads(arrays["about.json"].tobytes())
    about["run"]["config"] |= {"rule": "ability", "constants": rules.make("ability").constants()}
    arrays["about.json"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    (tmp_path / "results/fetch-conflict/ability").mkdir()
    (tmp_path / "results/fetch-conflict/ability/100.npz").write_bytes(buffer.getvalue())
    page = page_of(tmp_path)
    assert "`ability` has runs in 1 of 1 comparisons. A first impression: `fetch-conflict` (first)." in page
    assert "`ability` and `mixture` are first" in page
    assert "1 seed: a first impression. Budget: 1,200 windows, evaluated every 20." in page
    assert "Not in the summary, with too few seeds: `fetch-conflict`." in page
    assert [line.split(" | ")[5] for line in page.splitlines() if line.startswith("| `mixture`")] == ["1.00"]
