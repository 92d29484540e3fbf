"""The documentation site: it builds without a warning, and headless Chromium walks it from disk.

No page overflows, logs an error or asks a network for anything; search works; axe-core finds nothing serious.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from scout_rl import rules
from tests.browser import CHROMIUM, Browser

pytest.importorskip("material", reason="needs the extra docs")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md"))
"""Without 404.html, which only a server shows, from the root of its host."""
REPRESENTATIVE = [Path(name) for name in ("index.html", "concepts.html", "api/curriculum.html")]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert (built.returncode, built.stdout + built.stderr) == (0, ""), built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def test_every_page_is_built_and_holds_no_foreign_address(site):
    for page in PAGES:
        text = (site / page).read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]* src=\"?([^\" >]+)", text)
        loaded += re.findall(r"<link(?![^>]*rel=\"?(?:next|prev|canonical))[^>]* href=\"?([^\" >]+)", text)
        assert len(loaded) > 3
        assert not [url for url in loaded if urlsplit(url).scheme or url.startswith("/")], page


def test_the_reference_lists_every_rule_and_every_public_name(site):
    import scout_rl

    table = re.findall(r"^\| `([\w-]+)` \| `rules\.(\w+)` \|", (ROOT / "docs/api/rules.md").read_text(), re.M)
    assert table == [(key, rule.__name__) for key, rule in rules.RULES.items()]
    text = "".join(path.read_text() for path in (ROOT / "docs/api").glob("*.md"))
    shown = "".join(path.read_text() for path in (site / "api").glob("*.html"))
    for name in set(scout_rl.__all__) - {"__version__", "rules"}:
        assert f"::: scout_rl.{name}\n" in text, name
        assert f'id="scout_rl.{name}"' in shown, name
    assert ".rules.rule.Rule.__post_init__" not in shown


@needs_chromium
@pytest.mark.parametrize("width", [375, 1400])
def test_no_page_overflows_errs_or_leaves_the_disk(site, browser, width):
    browser.errors.clear()
    browser.requests.clear()
    browser.look(width=width)
    for page in PAGES:
        browser.open(site / page)
        wider = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{page} is {wider} px too wide at {width} px"
        assert not browser.errors, f"{page}: {browser.errors}"
    assert len(browser.requests) > len(PAGES)
    assert not [url for url in browser.requests if urlsplit(url).scheme not in ("file", "data", "about", "blob")]


@needs_chromium
def test_search_works_from_disk(site, browser):
    """From a page in a folder, so that links have to lead out of it."""
    browser.errors.clear()
    browser.look(width=1400)
    browser.open(site / "api/curriculum.html")
    browser.value("document.querySelector('[data-md-component=search-query]').focus()")
    browser.value(
        "(() => { const field = document.querySelector('[data-md-component=search-query]'); field.value = 'reset_to';"
        " field.dispatchEvent(new Event('keyup')) })()"
    )
    browser.until("document.querySelectorAll('.md-search-result__item a').length", seconds=60)
    links = browser.value("[...document.querySelectorAll('.md-search-result__item a')].map(link => link.href)")
    assert links
    for link in links:
        parts = urlsplit(link)
        target = Path(unquote(parts.path)).read_text()
        assert "reset_to" in target
        assert not parts.fragment or re.search(rf'id="?{re.escape(unquote(parts.fragment))}[" >]', target), link
    assert not browser.errors


def serious(browser, page, *, dark):
    """What axe-core calls serious or critical on a page."""
    browser.look(width=1400, dark=dark)
    browser.open(page)
    browser.until(f"document.body.dataset.mdColorScheme === '{'slate' if dark else 'default'}'")
    return browser.serious()


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(site, browser, dark):
    for page in REPRESENTATIVE:
        assert serious(browser, site / page, dark=dark) == [], page


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", [page for page in PAGES if page not in REPRESENTATIVE], ids=str)
def test_axe_finds_nothing_serious_on_the_other_pages(site, browser, page, dark):
    assert serious(browser, site / page, dark=dark) == []


@needs_chromium
def test_the_checks_can_fail(site, browser, tmp_path):
    """A page with pale text, a nameless button, a wide line and a foreign image is caught by each of them."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<html lang=en><title>bad</title><body data-md-color-scheme=default><main><h1>Bad</h1><button></button>"
        "<p style='color:#ccc;background:#fff'>pale</p><div style='width:3000px'>wide</div>"
        "<img alt='' src='http://127.0.0.1:9/none.png'></main>"
    )
    browser.requests.clear()
    assert {name for name, *_ in serious(browser, bad, dark=False)} == {"button-name", "color-contrast"}
    assert browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth") > 0
    assert "http://127.0.0.1:9/none.png" in browser.requests
    browser.until("true")
    assert browser.errors
    browser.errors.clear()
