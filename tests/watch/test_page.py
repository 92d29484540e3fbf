"""The watch page in a real browser, over the real command: it updates, answers mouse and keys, and breaks nowhere."""

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.records.level_colours import STOPS
from scout_rl.report.read.runs import load
from tests.browser import CHROMIUM, Browser
from tests.watch.planted import GrowingRun, campaign, damaged

pytest.importorskip("starlette", reason="needs the extra watch")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")

SRC = Path(__file__).parents[2] / "src/scout_rl"
IMAGES = Path(__file__).parents[2] / "docs/images"
FILES = [*sorted((SRC / "watch/page").iterdir()), SRC / "report/show/draw.js", SRC / "report/show/look.css"]
EVIL = "<script>alert(1)</script>"


class Served:
    """``scout watch`` in a process of its own."""

    def __init__(self, *folders, port=0):
        command = [sys.executable, "-m", "scout_rl", "watch", *map(str, folders), "--port", str(port), "--no-open"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+", line)[0]
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def stop(self):
        self.process.terminate()
        self.process.wait(200)
        self.process.stdout.close()


class Page:
    """What a reader does and sees."""

    def __init__(self, browser, served):
        self.browser, self.served = browser, served

    def show(self, address="#/", **look):
        """Open a view as a link from outside would, and wait until it is drawn and live."""
        if look:
            self.browser.look(**look)
        self.browser.open("about:blank")
        self.browser.open(f"{self.served.url}{address}")
        self.live()
        self.shown(address)

    def leave(self):
        """Close the page before its server."""
        self.browser.open("about:blank")
        self.served.stop()
        self.browser.errors.clear()

    def live(self):
        self.browser.until("document.body?.dataset.connection === 'live'")

    def shown(self, address):
        self.browser.until(f"(document.body?.dataset.shown || '').startsWith({address!r})")

    def text(self, selector="main"):
        return self.browser.value(f"document.querySelector({selector!r}).innerText")

    def texts(self, selector):
        return self.browser.value(f"[...document.querySelectorAll({selector!r})].map(each => each.textContent)")

    def ids(self):
        return self.browser.value(
            "fetch('api/overview').then(a => a.json()).then(o => Object.fromEntries(o.runs.map(r => [r.name, r.id])))"
        )

    def choose(self, label, value):
        self.browser.value(
            f"(s => {{ s.value = {value!r}; for (const e of ['change', 'input']) s.dispatchEvent(new Event(e)) }})"
            f"(document.querySelector('[aria-label=\"{label}\"]'))"
        )

    def on_map(self, share_x, share_y):
        """A point of the map, in the window."""
        self.browser.value("document.querySelector('main canvas').scrollIntoView({block: 'center'})")
        left, top, width, height = self.browser.value(
            "(r => [r.left, r.top, r.width, r.height])(document.querySelector('main canvas').getBoundingClientRect())"
        )
        return left + width * share_x, top + height * share_y

    def hover(self, share_x, share_y):
        """The lines of the tip over the map."""
        self.browser.move_mouse(*self.on_map(share_x, share_y))
        self.browser.until("!document.querySelector('main canvas ~ .tip').hidden")
        return self.text("main canvas ~ .tip").splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign with a failure, a rule without frontiers, a damaged run, and someone's loop with an evil name."""
    folder = tmp_path_factory.mktemp("watched")
    campaign(folder / "campaign", windows=60)
    damaged(folder / "damaged")
    GrowingRun(folder / "random", rule=rules.Random(), seed=42).play(60)
    GrowingRun(folder / EVIL.replace("/", "_"), kind="log_dir", name=EVIL, seed=41).play(40)
    return folder


@pytest.fixture(scope="module")
def growing(folder):
    """A run that a test lets grow."""
    return GrowingRun(folder / "live", rule=rules.Scout(n_min=3), n_contexts=12, seed=43, budget=400).play(120)


@pytest.fixture(scope="module")
def served(folder, growing):
    served = Served(folder)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser, served):
    page = Page(browser, served)
    browser.look(width=1280)
    browser.errors.clear()
    browser.requests.clear()
    yield page
    assert browser.errors == []
    assert not [url for url in browser.requests if not url.startswith((served.url, "about:"))]


def test_the_files_hold_no_markup_from_data_and_no_foreign_address():
    text = {path.name: path.read_text() for path in FILES}
    assert {"index.html", "watch.js", "watch.css", "draw.js", "look.css"} <= text.keys()
    for name, content in text.items():
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(.style"
        assert not re.search(forbidden, content), name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content), name
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", text["index.html"])


@needs_chromium
def test_a_run_in_progress_updates_without_reload(page, browser, growing):
    """And without losing place, order, typed text or selection."""
    page.show()
    address = f"#/run/{page.ids()['live']}"
    page.show(f"{address}?sort=move")
    before = growing.curriculum.windows
    browser.until(f"document.querySelector('main canvas').dataset.windows === '{before}'")
    browser.value(
        "window.same = document.querySelector('main canvas'); document.querySelector('.events').scrollIntoView()"
    )
    browser.value("getSelection().selectAllChildren(document.querySelector('h1'))")
    place = browser.value("document.querySelector('.events').getBoundingClientRect().top")
    assert browser.value("scrollY") > 300
    growing.play(20)
    after = growing.curriculum.windows
    browser.until(f"document.querySelector('main canvas').dataset.windows === '{after}'")
    # The map and the status may be newer than the events, which follow with the next look.
    for part, words in ((".status", f"{after} of 400 windows"), (".events", f"success after {after} windows")):
        browser.until(f"document.querySelector('{part}').innerText.includes('{words}')")
    assert browser.value("window.same === document.querySelector('main canvas')")
    assert browser.value("document.querySelector('[aria-label=\"order of contexts\"]').value") == "move"
    assert browser.value("getSelection().toString()") == "live"
    assert abs(browser.value("document.querySelector('.events').getBoundingClientRect().top") - place) < 2
    frontier = load(growing.folder).frontier[-1]
    assert page.texts(".tile b")[1] == str((frontier == 0).sum())


@needs_chromium
def test_the_map_is_the_frontier_and_its_tip_says_so(page, browser, growing):
    page.show()
    page.show(f"#/run/{page.ids()['live']}?sort=bank")
    run = load(growing.folder)
    windows, contexts = run.frontier.shape
    assert windows <= 240  # one column per window
    colours = browser.value(
        "(c => { const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "return [...Array(12).keys()]"
        ".map(r => [...all.slice((Math.floor((r + 0.5) / 12 * c.height) * c.width + c.width - 4) * 4).slice(0, 3)]); })"
        "(document.querySelector('main canvas'))"
    )
    scale = np.array(STOPS)[np.arange(5) * 2].tolist()
    assert [scale.index(colour) for colour in colours] == run.frontier[-1].tolist()
    window, context = 50, 7
    lines = page.hover((window + 0.5) / windows, (context + 0.5) / contexts)
    mine = (run.rollouts.window == window) & (run.rollouts.context == context)
    assert lines[0] == f"context {context}, hard, window {window + 1}"
    assert lines[1].startswith(f"frontier at level {run.frontier[window, context]}")
    won, tried = run.rollouts.success[mine].sum(), mine.sum()
    expected = f"{won} of {tried} rollout{'s' if tried > 1 else ''} succeeded" if tried else "not drawn here"
    assert lines[2].startswith(expected)
    last = run.moves.window[run.moves.context == context].max() + 1
    assert lines[3] == f"last move in window {last}"
    assert lines[4].startswith("now ")


@needs_chromium
def test_sort(page, growing):
    page.show()
    page.show(f"#/run/{page.ids()['live']}")
    run = load(growing.folder)
    contexts = run.about.n_contexts
    moved = np.zeros(contexts, int)
    moved[run.moves.context] = run.moves.window + 1
    orders = {
        "bank": np.arange(contexts),
        "move": np.lexsort((np.arange(contexts), -moved)),
        "group": np.lexsort((run.frontier.mean(axis=0), run.context_group)),
        "frontier": np.lexsort((run.frontier.mean(axis=0), run.frontier[-1])),
    }
    for name, order in orders.items():
        page.choose("order of contexts", name)
        rows = [page.hover(0.5, (row + 0.5) / contexts)[0] for row in (0, contexts - 1)]
        assert [int(re.match(r"context (\d+)", row)[1]) for row in rows] == [order[0], order[-1]], name
        assert f"sort={name}" in page.browser.value("location.hash")


@needs_chromium
def test_click_through_to_a_context_and_back(page, browser, growing):
    page.show()
    address = f"#/run/{page.ids()['live']}"
    page.show(f"{address}?sort=bank")
    run = load(growing.folder)
    drawing = growing.folder / "rungs/4.png"
    drawing.parent.mkdir()
    shutil.copy(IMAGES / "rungs.png", drawing)
    point = page.on_map(0.5, 4.5 / 12)
    place = browser.value("scrollY")
    browser.click(*point)
    page.shown(f"{address}/context/4")
    assert page.text("h1") == "Context 4"
    tried = [int(((run.rollouts.context == 4) & (run.rollouts.level == level)).sum()) for level in range(5)]
    assert f"{sum(tried)} rollouts so far" in page.text()
    told = [text.split(" of ")[-1] for text in page.texts(".chances td:nth-child(4)")]
    assert told == [str(n) if n else "none" for n in tried]
    assert len(page.texts(".chances .ringed")) == sum(n > 0 for n in tried)
    browser.until("document.querySelector('.pictures img').naturalWidth > 100")
    assert page.texts(".events li")[0].startswith(str(run.moves.window[run.moves.context == 4].max() + 1))
    browser.value("history.back()")
    page.shown(f"{address}?sort=bank")
    assert page.text("h1") == "live"
    assert browser.value("document.querySelector('[aria-label=\"order of contexts\"]').value") == "bank"
    assert abs(browser.value("scrollY") - place) < 2


@needs_chromium
def test_two_ticked_runs_are_compared_seed_by_seed(page, browser):
    page.show()
    ids = page.ids()
    names = ["campaign/planted/ability/40", "campaign/planted/scout/40", "campaign/planted/ability/41"]
    for name in names:
        browser.value(f"document.querySelector('[aria-label=\"compare {name}\"]').click()")
    assert page.text(".chosen a") == "Compare 3 runs"
    browser.value("document.querySelector('.chosen a').click()")
    page.shown("#/compare/")
    assert set(page.texts(".key a")) == set(names)
    assert [text for text in page.texts(".figure h3") if text.startswith("Seed")] == ["Seed 40", "Seed 41"]
    assert browser.value("document.querySelectorAll('.figure')[1].querySelectorAll('path[stroke-width]').length") == 2
    compared = browser.value(f"fetch('api/compare?{'&'.join(f'run={ids[n]}' for n in names)}').then(a => a.json())")
    runs = {(pair["seed"], run["label"]): run["worst_auc"] for pair in compared["pairs"] for run in pair["runs"]}
    assert page.texts(".pairs th") == ["seed", "ability", "scout"]
    cells = page.texts(".pairs td")
    assert cells[1].startswith(f"{runs[40, 'ability']:.2f}, now ")
    assert cells[2].startswith(f"{runs[40, 'scout']:.2f}, now ")
    assert "median over 1 paired seed" in page.text(".say")


@needs_chromium
def test_names_of_records_are_text(page, browser):
    page.show()
    assert EVIL in page.text(".runs")
    name = EVIL.replace("/", "_")
    page.show(f"#/run/{page.ids()[name]}")
    assert page.text("h1") == name
    assert browser.value("document.querySelectorAll('main script, main b > b').length") == 0
    assert browser.value("[...document.scripts].length") == 1


@needs_chromium
def test_a_damaged_run_and_a_campaign_say_what_is_wrong(page, browser):
    page.show()
    browser.until("document.querySelector('.runs').innerText.includes('windows.jsonl is damaged at row 31')")
    browser.value("[...document.querySelectorAll('nav a')].find(a => a.textContent.includes('1 failed')).click()")
    page.shown("#/campaign/")
    assert "Failed 3 times, after 60 windows: failure 3: out of memory" in page.text(".alerts")
    assert page.texts(".campaign th") == ["setting and rule", "seed 40", "seed 41"]
    states = page.texts(".campaign .state")
    assert len(states) == 4
    assert {"failed", "waiting"} < set(states) <= {"failed", "waiting", "training", "stopped"}
    page.show("#/run/0123456789abcdef")
    assert "This could not be shown: there is no such run" in page.text("main")
    page.browser.errors[:] = [error for error in browser.errors if "404" not in error]  # the browser's own line


@needs_chromium
def test_a_row_that_moves_keeps_the_focus(page, browser):
    page.show()
    script = """import("./page/parts.js").then(({ reconcile }) => {
        const list = document.querySelector("main").appendChild(document.createElement("div"));
        const make = (name) => Object.assign(document.createElement("button"), { textContent: name });
        const show = (names) => reconcile(list, names, (name) => name, make);
        show(["a", "b", "c"]);
        list.children[1].focus();
        const seen = [["b", "c", "a"], ["c", "a", "b"], ["a", "c"]].map((names) => {
            show(names);
            return document.activeElement.textContent;
        });
        list.remove();
        return seen.slice(0, 2).join() + (seen[2].length > 1);
    })"""
    assert browser.value(script) == "b,btrue"  # and none where it is gone


@needs_chromium
def test_keys_alone_lead_to_a_context(page, browser):
    page.show()
    focused = "document.activeElement"
    for _ in range(60):
        browser.press("Tab")
        if browser.value(f"{focused}.textContent") == "live" and browser.value(f"{focused}.className") == "name":
            break
    assert browser.value(f"getComputedStyle({focused}).outlineStyle") == "solid"
    browser.press("Enter")
    page.shown("#/run/")
    assert browser.value(f"{focused}.tagName") == "H1"
    for _ in range(30):
        browser.press("Tab")
        if browser.value(f"{focused}.tagName") == "CANVAS":
            break
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        browser.press(key)
    context = re.match(r"context (\d+), \w+, window 2$", page.text("main canvas ~ .tip").splitlines()[0])[1]
    browser.press("Enter")
    page.shown("#/run/")
    browser.until(f"location.hash.endsWith('/context/{context}')")
    browser.until("document.body.dataset.shown === location.hash")
    assert page.text("h1") == f"Context {context}"


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A campaign with a damaged run, two settings, a column with hundreds of rollouts, and a run that is cut back."""
    folder = tmp_path_factory.mktemp("odd")
    campaign(folder / "campaign", windows=20)
    damaged(folder / "campaign/planted/scout/42")
    (folder / "campaign/.campaign/planted/scout/43.failures.json").write_text("{")
    for setting in ("doorkey", "fetch-air"):
        GrowingRun(folder / setting, rule=rules.Scout(), setting=setting).play(40)
    crowded = GrowingRun(folder / "crowded", n_contexts=8).play(1)
    resumed = GrowingRun(folder / "resumed", kind="log_dir", rule=rules.Random(), n_contexts=8).play(40)
    served = Served(folder)
    yield {"folder": folder, "served": served, "crowded": crowded, "resumed": resumed}
    served.stop()


@pytest.fixture
def odd_page(browser, odd):
    page = Page(browser, odd["served"])
    browser.errors.clear()
    page.show(width=1280)
    yield page
    browser.open("about:blank")
    assert [error for error in browser.errors if not re.search("40[04]", error)] == []


COLUMNS = """(async () => {
    const { Columns } = await import('/page/heat.js');
    window.kept ||= new Columns('ID');
    await window.kept.update();
    const fresh = new Columns('ID');
    await fresh.update();
    const numbers = (columns) => Object.entries(columns.grids).map(([name, grid]) => [name, [...grid]]);
    return [numbers(window.kept), numbers(fresh)];
})()"""


@needs_chromium
def test_columns_with_hundreds_of_rollouts(odd_page, browser, odd):
    run, script = odd["crowded"], COLUMNS.replace("ID", odd_page.ids()["crowded"])
    for episodes in (16, 4096, 16):
        run.episodes = episodes
        run.play(1)
        kept, fresh = map(dict, browser.value(script))
        assert kept == fresh
        rollouts = load(run.folder).rollouts
        count = np.bincount(rollouts.window.astype(int) * 8 + rollouts.context)
        assert kept["tried"] == count.tolist() + [0] * (len(kept["tried"]) - len(count))
    assert max(kept["tried"]) > 255
    address = f"#/run/{odd_page.ids()['crowded']}?sort=bank"
    odd_page.show(address)
    mine = (rollouts.window == 2) & (rollouts.context == 0)
    told = odd_page.hover(2.5 / run.curriculum.windows, 0.5 / 8)[2]
    assert told.startswith(f"{rollouts.success[mine].sum()} of {mine.sum()} rollouts succeeded")


@needs_chromium
def test_a_run_that_was_cut_back_and_has_grown_past_its_old_end(odd_page, browser, odd):
    """While the page was hidden, so that it asks for what is new since its last window."""
    run, script = odd["resumed"], COLUMNS.replace("ID", odd_page.ids()["resumed"])
    saved = run.curriculum.state_dict()
    run.play(20, lambda cells, window: np.zeros(16, bool))
    before, _ = map(dict, browser.value(script))
    run.curriculum.load_state_dict(saved)
    run.play(30, lambda cells, window: np.ones(16, bool))
    kept, fresh = map(dict, browser.value(script))
    assert kept == fresh
    assert kept["won"][40 * 8 : 60 * 8] == kept["tried"][40 * 8 : 60 * 8] != before["won"][40 * 8 : 60 * 8]


@needs_chromium
def test_a_damaged_run_of_a_campaign_has_not_failed(odd_page, browser):
    key = browser.value("fetch('api/overview').then(a => a.json()).then(o => o.campaigns[0].id)")
    damage = "document.querySelector('main .alerts')?.innerText.includes('windows.jsonl is damaged at row 31')"
    odd_page.show(f"#/campaign/{key}")
    browser.until(damage)
    (entry,) = [text for text in odd_page.texts(".alerts li") if "seed 42" in text]
    assert entry.startswith("damagedplanted scout, seed 42/")
    assert "Failed" not in entry
    assert "43.failures.json is damaged" in odd_page.text(".troubles")
    assert sum("Failed 3 times" in text for text in odd_page.texts(".alerts li")) == 1


@needs_chromium
def test_a_run_that_failed_and_is_trained_again_has_its_new_state_and_a_link(odd_page, browser, odd):
    key = browser.value("fetch('api/overview').then(a => a.json()).then(o => o.campaigns[0].id)")
    odd_page.show(f"#/campaign/{key}")
    entry = "[...document.querySelectorAll('main .alerts li')].find(each => each.innerText.includes('scout, seed 41'))"
    assert browser.value(f"{entry}.textContent").startswith("waiting")
    assert not browser.value(f"{entry}.querySelector('a')")
    GrowingRun(odd["folder"] / "campaign/planted/scout/41", rule=rules.Scout(), seed=41).play(1)
    browser.until(f"{entry}?.querySelector('a') && {entry}.textContent.startsWith('training')")


@needs_chromium
def test_the_setting_is_named_once_in_a_comparison(odd_page, browser):
    ids = odd_page.ids()
    odd_page.show(f"#/compare/{ids['doorkey']},{ids['fetch-air']}")
    assert odd_page.texts(".pairs th") == ["seed", "doorkey scout", "fetch-air scout"]
    label = browser.value("document.querySelector('.figure svg').getAttribute('aria-label')")
    assert label.endswith("doorkey scout, fetch-air scout, 2 runs")
    assert "doorkey doorkey" not in browser.value("document.querySelector('main').textContent")


@needs_chromium
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("#/run/%zz", "there is no such run"),
        ("#/%E0%A4%A", ""),
        ("#/compare", "name 1 to 64 runs"),
        ("#/campaign/%", "there is no such campaign"),
    ],
)
def test_an_address_that_is_malformed(odd_page, address, sentence):
    odd_page.show(address)
    assert (f"This could not be shown: {sentence}" if sentence else "Runs") in odd_page.text("main")


def addresses(page):
    """One of every view."""
    ids = page.ids()
    campaigns = page.browser.value("fetch('api/overview').then(a => a.json()).then(o => o.campaigns.map(c => c.id))")
    both = f"{ids['campaign/planted/ability/40']},{ids['campaign/planted/scout/40']}"
    run = f"#/run/{ids['live']}"
    return ["#/", run, f"{run}/context/3", f"#/compare/{both}", f"#/campaign/{campaigns[0]}", f"#/run/{ids['random']}"]


@needs_chromium
def test_no_view_overflows_on_a_phone_or_a_wide_screen(page, browser):
    page.show()
    for address in addresses(page):
        page.show(address, width=375, dark=True)
        for width in (375, 1600):
            browser.look(width=width)
            wider = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wider <= 0, f"{address} is {wider} px too wide at {width} px"
    browser.look(width=1280)


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(page, browser, dark):
    page.show()
    for address in addresses(page)[:2]:
        page.show(address, width=1400, dark=dark)
        assert browser.serious() == [], address


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1600])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_any_view(page, browser, dark, width):
    page.show()
    for address in addresses(page):
        page.show(address, width=width, dark=dark)
        assert browser.serious() == [], address


@needs_chromium
@pytest.mark.slow
def test_a_lost_connection_is_shown_and_comes_back(browser, tmp_path):
    run = GrowingRun(tmp_path / "run", n_contexts=8).play(30)
    served = Served(tmp_path)
    page = Page(browser, served)
    try:
        page.show()
        page.show(f"#/run/{page.ids()['run']}")
        served.stop()
        browser.until("document.body.dataset.connection === 'lost'")
        assert re.fullmatch(r"Connection lost at \d\d:\d\d:\d\d\. Trying again\.", page.text("#connection"))
        assert page.text("h1") == "run"  # what was read stays
        run.play(10)
        page.served = Served(tmp_path, port=served.port)
        page.live()
        browser.until("document.querySelector('main canvas').dataset.windows === '40'")
        assert browser.errors
        assert all("ERR_" in error for error in browser.errors), browser.errors
    finally:
        page.leave()


@needs_chromium
@pytest.mark.slow
def test_an_empty_folder_says_so_until_a_run_begins(browser, tmp_path):
    browser.errors.clear()
    served = Served(tmp_path)
    page = Page(browser, served)
    try:
        page.show()
        assert page.text(".empty").startswith("No run folder here yet: a run shows up as soon as something is trained")
        run = GrowingRun(tmp_path / "first", n_contexts=8)
        browser.until("document.querySelector('.runs .name')?.textContent === 'first'")
        page.show(f"#/run/{page.ids()['first']}")
        assert "No window is closed yet" in page.text()
        run.play(3)
        browser.until("document.querySelector('main canvas')?.dataset.windows === '3'")
        assert browser.errors == []
    finally:
        page.leave()


@needs_chromium
@pytest.mark.slow
def test_ten_thousand_contexts_stay_usable(browser, tmp_path):
    """Few elements, a map that answers, and an update that costs the page little."""
    browser.errors.clear()
    run = GrowingRun(
        tmp_path / "many", rule=rules.Scout(n_min=2), n_contexts=10_000, episodes=512, every=10, budget=400
    ).play(300)
    served = Served(tmp_path)
    page = Page(browser, served)
    try:
        page.show()
        page.show(f"#/run/{page.ids()['many']}?sort=bank")
        assert browser.value("document.querySelectorAll('*').length") < 1500
        frontier = load(run.folder).frontier
        lines = page.hover(0.5, 0.5)
        context = int(re.match(r"context (\d+)", lines[0])[1])
        assert abs(context - 5000) < 40  # some contexts share a pixel
        page.choose("rows at a time", "page")
        assert "Rows 1 to 100 of 10,000" in page.text()
        assert page.hover(0.999, 0.5 / 100)[0].startswith("context 0,")
        assert page.hover(0.999, 0.5 / 100)[1].startswith(f"frontier at level {frontier[-1, 0]}")
        before = browser.seconds()
        page.choose("order of contexts", "frontier")
        assert browser.seconds() - before < 2  # sorted and drawn
        run.play(5)
        browser.until("document.querySelector('main canvas').dataset.windows === '305'")
        assert browser.errors == []
    finally:
        page.leave()


def test_the_pictures_of_the_page_are_small():
    sizes = [(IMAGES / name).stat().st_size for name in ("watch.gif", "watch-compare.png")]
    assert min(sizes) > 20_000
    assert sum(sizes) < 300_000


@needs_chromium
@pytest.mark.slow
def test_the_pictures_are_made_from_a_real_run(tmp_path, monkeypatch):
    """Every frame of the moving picture is another state of the run, and the last is its end."""
    image = pytest.importorskip("PIL.Image")
    from tests.watch import pictures

    monkeypatch.chdir(IMAGES.parents[1])
    pictures.take(tmp_path)
    with image.open(tmp_path / "watch.gif") as moving:
        assert moving.n_frames == len(pictures.WINDOWS)
        frames = []
        for frame in range(moving.n_frames):
            moving.seek(frame)
            frames.append(np.asarray(moving.convert("RGB")).astype(int))
    maps = [frame[480:900, 80:960] for frame in frames[1:] + frames[:1]]
    yellow = [float((np.abs(part - STOPS[-1]).max(axis=2) < 12).mean()) for part in maps]
    assert yellow[0] > 0.9 > 0.5 > yellow[-1]
    assert all(before >= after - 0.02 for before, after in itertools.pairwise(yellow))
