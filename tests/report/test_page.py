"""The page in a real browser: no error, no request, figures visible, hover and keys, light, dark, narrow, wide."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.records.level_colours import STOPS
from scout_rl.records.tables import KINDS
from scout_rl.report.build import report
from scout_rl.report.read.runs import load
from scout_rl.report.show.heat import encode, evidence_of_moves
from tests.browser import CHROMIUM, Browser
from tests.report.planted import as_run_folder, config, curve, play, steadily, write_compact

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")
AT = np.arange(0, 121, 20)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A run folder of SCOUT with two groups, compact records of two rules without a frontier, and someone's log_dir."""
    folder = tmp_path_factory.mktemp("page")
    play(folder / "runs/scout", steadily(lambda c: 1.0, every=12), n_contexts=12, windows=120, rollouts=12)
    run_config = config(seed=100, constants=rules.Scout().constants())
    as_run_folder(folder / "runs/scout", run_config, {"near": curve(40, at=AT), "far": curve(80, at=AT)})
    groups = {"near": curve(20, at=AT), "far": curve(100, final=0.5, at=AT)}
    for rule in ("anneal", "random"):
        write_compact(folder / f"runs/{rule}.npz", config(rule=rule), groups, n_contexts=12, bank="cd" * 32)
    play(folder / "theirs", steadily(lambda c: 1.0), n_contexts=5, windows=60)
    (folder / "labels.json").write_text(json.dumps(["near"] * 6 + ["far"] * 6))
    return folder


@pytest.fixture(scope="module")
def page(planted):
    return report([planted / "runs"], planted / "out", groups=planted / "labels.json")


def test_what_lies_beside_the_page(page):
    names = {str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file()}
    assert {"tables/planted-success.md", "tables/planted-success.tex", "tables/planted-success.csv"} <= names
    assert {"figures/planted/worst-curves.svg", "figures/planted/worst-curves.png"} <= names


def test_the_page_names_every_config_and_version(page):
    text = page.read_text()
    payload = json.loads(re.search(r'id="runs">(.*?)</script>', text, re.S)[1])
    assert len(payload["runs"]) == 3
    for run in payload["runs"]:
        assert payload["configs"][run["config"]]["rule"] == run["rule"]
        assert payload["versions"][run["versions"]]["python"] == "3.12.0"
    assert "Nothing may be concluded about" in text


def test_nothing_on_the_page_leads_outside(page):
    text = page.read_text()
    links = set(re.findall(r'(?:src|href)="([^"]*)"', text))
    assert all(link.startswith("#") for link in links)
    assert "default-src 'none'" in text


def test_text_from_records_cannot_become_markup(tmp_path):
    run_config = config(rule="scout", setting="<script>alert(1)</script>")
    write_compact(tmp_path / "<b>.npz", run_config, {"</script><i>": curve(40, at=AT)})
    text = report([tmp_path], tmp_path / "out").read_text()
    assert "<script>alert" not in text
    assert "<i>" not in text.split('id="runs">')[1]
    assert "</script><i>" not in text


def test_an_unfinished_run_is_shown_and_counted_nowhere(planted, tmp_path):
    for name, windows in (("whole", 120), ("half", 100)):
        play(tmp_path / name, steadily(lambda c: 1.0), n_contexts=6, windows=windows, rollouts=4)
        run_config = config(seed=100 if name == "whole" else 101, constants=rules.Scout().constants())
        as_run_folder(tmp_path / name, run_config, {"all": curve(60, at=AT)})
    text = report([tmp_path / "whole", tmp_path / "half"], tmp_path / "out").read_text()
    assert "1 not finished and in no table" in text
    assert "100 of 120: not finished, in no table" in text
    rows = (tmp_path / "out/tables/planted-success.csv").read_text().splitlines()
    assert rows[1].startswith("scout,1,1.00,")


def test_the_reasons_behind_moves(planted):
    """Counted again by hand from the rollouts, for every move."""
    run = load(planted / "runs/scout")
    evidence, known, won = evidence_of_moves(run)
    assert len(evidence) > 20
    for i in range(len(evidence)):
        window, context, _, level = (column[i] for column in run.moves)
        mine = (run.rollouts.context == context) & (run.rollouts.level == level) & (run.rollouts.window <= window)
        outcomes = run.rollouts.success[mine]
        assert (evidence[i], known[i], won[i]) == (len(outcomes), min(10, len(outcomes)), outcomes[-10:].sum())


def as_the_page_plays(encoded, run):
    """The frontier of every window, from the stored moves alone."""
    raw, arrays, at = zlib.decompress(base64.b64decode(encoded["data"])), {}, 0
    for name, size, length in encoded["layout"]:
        arrays[name] = np.frombuffer(raw, f"<u{size}", length, at).astype(int)
        at += size * length
    now = arrays.get("start", np.full(run.about.n_contexts, run.about.n_levels - 1)).copy()
    frontier = np.zeros_like(run.frontier)
    window = np.cumsum(arrays["steps"])
    for w in range(len(frontier)):
        for i in np.flatnonzero(window == w):
            by_one = now[arrays["context"][i]] + (1 if KINDS[arrays["kind"][i]] == "retreat" else -1)
            now[arrays["context"][i]] = arrays["to"][i] if "to" in arrays else by_one
        frontier[w] = now
    return frontier, "to" in arrays


@pytest.mark.parametrize(("rule", "skips"), [(rules.Scout(), False), (rules.RfclDemo(delta=4), True)])
def test_the_stored_moves_are_the_frontier(tmp_path, rule, skips):
    """`rfcl-demo` advances by several levels at once."""
    play(tmp_path / "run", lambda c, level, w: 0.8, rule=rule, n_contexts=6, n_levels=15, windows=120)
    run = load(tmp_path / "run")
    assert (run.frontier[-1] < 14).any()
    drawn, says_where_to = as_the_page_plays(encode(run, detailed=False), run)
    assert np.array_equal(drawn, run.frontier)
    assert says_where_to == skips


def test_a_rule_without_a_frontier_is_drawn_by_what_it_trained(planted):
    encoded = encode(load(planted / "runs/random.npz"), detailed=True)
    assert {"width", "mean", "tried", "won"} <= {name for name, *_ in encoded["layout"]}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = Browser(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


def over(browser, share_x, share_y):
    browser.value("document.documentElement.style.scrollBehavior = 'auto'")
    browser.value("document.getElementById('heat').scrollIntoView({block: 'center'})")
    box = browser.value(
        "(r => [r.left, r.top, r.width, r.height])(document.getElementById('heat').getBoundingClientRect())"
    )
    browser.value("document.getElementById('tip').hidden = true")  # what is read below is new
    browser.move_mouse(box[0] + box[2] * share_x, box[1] + box[3] * share_y)
    browser.until("!document.getElementById('tip').hidden")
    return browser.value("document.getElementById('tip').innerText").splitlines()


@needs_chromium
def test_the_page_in_a_browser(browser, page, planted, tmp_path):
    run = load(planted / "runs/scout")
    browser.open(page)
    browser.look()
    browser.until("document.body.dataset.drawn")
    assert browser.value("document.getElementById('which').selectedOptions[0].text") == "scout, seed 100"

    # figures are there and have a size
    figures = browser.value("[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)")
    assert len(figures) >= 6
    assert min(figures) > 200

    # the map is the frontier: bank order, every context's colour at the first and the last window
    browser.value("(s => { s.value = 'bank'; s.dispatchEvent(new Event('change')); })(document.getElementById('sort'))")
    target, easiest = list(STOPS[0]), list(STOPS[-1])
    first, last = edges(browser, rows=12)
    assert first == [easiest] * 12
    assert [colour == target for colour in last] == (run.frontier[-1] == 0).tolist()

    legend = browser.value("[...document.querySelectorAll('#legend span')].map(s => s.textContent)")
    assert (legend[0], legend[4]) == ("level 0: target start (no help)", "level 4: easiest start (most help)")

    # hover: a window in which context 4 moved says which way, and on what
    move = int(np.flatnonzero(run.moves.context == 4)[0])
    window, level = int(run.moves.window[move]), int(run.moves.from_level[move])
    lines = over(browser, (window + 0.5) / 120, 4.5 / 12)
    assert lines[0] == f"window {window + 1}, context 4, near"
    assert lines[1] == f"frontier at level {level - 1}"
    assert lines[2] == f"event: advance from level {level} to {level - 1}"
    evidence, known, won = (column[move] for column in evidence_of_moves(run))
    assert lines[3] == f"reason: {won} of the last {known} rollouts from level {level} succeeded ({evidence} so far)"

    # and one in which it did not says why not, in the rule's own word
    lines = over(browser, 2.5 / 120, 4.5 / 12)
    assert lines[1:3] == ["frontier at level 4", "event: none yet"]
    assert lines[3:] == ["reason: gathering, too few rollouts at this level yet"]

    # keys
    browser.value("document.getElementById('heat').focus()")
    browser.press("ArrowRight")
    assert browser.value("document.getElementById('tip').innerText").startswith("window 4, context 4")

    # another run, without a frontier
    browser.value("document.getElementById('next').click()")
    browser.until("document.body.dataset.drawn.endsWith('anneal.npz')")
    lines = over(browser, 0.5, 0.5)
    assert "event: none, anneal has no frontier" in lines
    assert "rollouts succeeded in" in lines[-1] or "not drawn here" in lines
    assert '"rule": "anneal"' in browser.value("document.getElementById('config').textContent")

    # light and dark, narrow and wide: nothing runs out of the page, text stays readable
    for width in (1280, 360):
        for dark in (False, True):
            browser.look(width=width, dark=dark)
            assert browser.value("document.documentElement.scrollWidth") <= width
            assert contrast(browser) > 7
            browser.picture(tmp_path / f"{width}-{dark}.png")
            assert (tmp_path / f"{width}-{dark}.png").stat().st_size > 10_000
    assert browser.errors == []
    assert browser.requests == [page.absolute().as_uri()]


@needs_chromium
def test_someone_elses_log_dir(browser, planted, tmp_path):
    page = report([planted / "theirs"], tmp_path)
    browser.look()
    browser.open(page)
    browser.until("document.body.dataset.drawn")
    assert over(browser, 0.01, 0.1)[2] == "event: none yet"
    assert "nothing is compared" in browser.value("document.body.innerText")
    assert browser.errors == []


@needs_chromium
def test_a_map_that_begins_in_the_middle_of_a_run(browser, tmp_path):
    """Restored into a new log_dir: true window numbers, and the frontiers that were there."""
    first = Curriculum(rules.Scout(), 6, 5, window=12, seed=0)
    easy_half(first, 50)
    second = Curriculum(rules.Scout(), 6, 5, window=12, seed=0, log_dir=tmp_path / "new")
    second.load_state_dict(first.state_dict())
    before = first.frontier.copy()
    assert set(before.tolist()) == {0, 4}
    easy_half(second, 40)
    browser.open(report([tmp_path / "new"], tmp_path / "out"))
    browser.until("document.body.dataset.drawn")
    browser.value("(s => { s.value = 'bank'; s.dispatchEvent(new Event('change')); })(document.getElementById('sort'))")
    for context in (1, 4):
        lines = over(browser, 0.5 / 40, (context + 0.5) / 6)
        assert lines[0] == f"window 51, context {context}"
        assert lines[1] == "frontier at " + ("level 4" if before[context] else "level 0 (target start)")
    assert over(browser, 39.5 / 40, 0.5 / 6)[0] == "window 90, context 0"
    assert browser.errors == []


def easy_half(curriculum, windows):
    """Contexts 0 to 2 always succeed, the others never."""
    for _ in range(windows):
        cells = curriculum.assign(12)
        curriculum.report(cells, cells.context < 3)


@needs_chromium
def test_a_page_with_a_run_that_has_just_started(browser, planted, tmp_path):
    run_config = config(seed=101, constants=rules.Scout().constants())
    as_run_folder(
        play(tmp_path / "started", steadily(lambda c: 1.0), n_contexts=6, windows=0),
        run_config,
        {"all": curve(60, at=AT)},
    )
    for name in ("evaluations", "metrics", "timing"):
        (tmp_path / f"started/{name}.jsonl").write_bytes(b"")
    browser.open(report([tmp_path / "started"], tmp_path / "out"))
    browser.until("document.readyState === 'complete'")
    assert "0 of 120: not finished, in no table" in browser.value("document.body.textContent")
    assert browser.value("document.getElementById('heat')") is None  # there is nothing to draw
    browser.open(report([planted / "runs/scout", tmp_path / "started"], tmp_path / "out"))
    browser.until("document.body.dataset.drawn")
    assert browser.value("document.getElementById('which').length") == 1
    assert browser.errors == []


@needs_chromium
def test_a_move_of_several_levels_in_a_browser(browser, tmp_path):
    rule = rules.RfclDemo(delta=4)
    play(tmp_path / "run", lambda c, level, w: 0.8, rule=rule, n_contexts=1, n_levels=15, windows=40)
    run = load(tmp_path / "run")
    browser.open(report([tmp_path / "run"], tmp_path / "out"))
    browser.until("document.body.dataset.drawn")
    window = int(run.moves.window[0])
    lines = over(browser, (window + 0.5) / 40, 0.5)
    assert lines[1:3] == ["frontier at level 10", "event: advance from level 14 to 10"]
    assert browser.errors == []


def edges(browser, rows):
    """The map's colours at the first and the last window, row by row; one reading of the canvas."""
    return browser.value(
        "(c => { const whole = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        f"const rows = [...Array({rows}).keys()].map(r => Math.floor((r + 0.5) / {rows} * c.height));"
        "const at = (x, y) => [...whole.slice((y * c.width + x) * 4, (y * c.width + x) * 4 + 3)];"
        "return [2, c.width - 3].map(x => rows.map(y => at(x, y))); })"
        "(document.getElementById('heat'))"
    )


def contrast(browser):
    """WCAG contrast of the text of a card against it."""
    colours = browser.value(
        "['color', 'backgroundColor'].map(p => getComputedStyle(document.querySelector('section'))[p])"
        ".map(c => c.match(/\\d+/g).map(Number))"
    )

    def luminance(rgb):
        linear = [(v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4) for v in rgb[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(rgb) for rgb in colours), reverse=True)
    return (bright + 0.05) / (dim + 0.05)
