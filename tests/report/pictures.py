"""Draw the two pictures of docs/report.md in a headless Chromium: ``python -m tests.report.pictures``, in the root.

They show the report of ``results/multiroom``: the top of its section, and the map with a hover.
"""

import tempfile
from pathlib import Path

from scout_rl.report.build import report
from tests.browser import Browser

IMAGES = Path("docs/images")
WIDTH = 1100


def take(out: Path = IMAGES) -> None:
    """Write ``report.png`` and ``report-frontiers.png``."""
    with tempfile.TemporaryDirectory() as folder:
        page = report([Path("results/multiroom")], Path(folder) / "report")
        browser = Browser(Path(folder) / "profile")
        browser.look(width=WIDTH, height=900)
        browser.open(page)
        browser.until("document.body.dataset.drawn")
        browser.value("document.documentElement.style.scrollBehavior = 'auto'")
        browser.value("document.querySelector('section').scrollIntoView()")
        browser.picture(out / "report.png")
        browser.look(width=WIDTH, height=850)
        browser.value("document.getElementById('frontiers').scrollIntoView()")
        box = browser.value(
            "(r => [r.left, r.top, r.width, r.height])(document.getElementById('heat').getBoundingClientRect())"
        )
        browser.move_mouse(box[0] + box[2] * 0.31, box[1] + box[3] * 0.58)
        browser.until("!document.getElementById('tip').hidden")
        browser.picture(out / "report-frontiers.png")
        browser.close()


if __name__ == "__main__":
    take()
