"""Draw the pictures of docs/watch.md in a headless Chromium: ``python -m tests.watch.pictures``, in the root.

``watch.gif``: the page of one run while its records grow. The run is a committed one: its cells and outcomes are
reported to a curriculum again, which writes the same records again. Its seconds per window are their mean.
``watch-compare.png``: the comparison of three rules, from committed records.
"""

import io
import json
import tempfile
from pathlib import Path

import numpy as np

from scout_rl import Curriculum, rules
from scout_rl.records.compact import unpack
from scout_rl.records.tables import JsonLines
from scout_rl.rules.cells import Cells
from tests.browser import Browser
from tests.watch.test_page import Page, Served

IMAGES = Path("docs/images")
RECORD = Path("results-one-rule/doorkey-16-split/scout/102-windows250-evaluate_every10-n_min5.npz")
COMPARED, RULES = Path("results-one-rule/multiroom"), ("ability", "scout", "random")
WINDOWS = (10, 40, 70, 100, 130, 160, 190, 220, 250)
FRAME_MS, LAST_MS = 500, 3000
RETREAT = (232, 0, 11)
SIZE, COMPARED_SIZE = {"width": 1040, "height": 1400}, {"width": 1240, "height": 770, "dark": True}


class Again:
    """A compact record's run, written once more as a run folder, window by window."""

    def __init__(self, record, folder):
        self.record, about = unpack(record), unpack(record).about
        config = about["config"]
        self.seconds = self.record.seconds / config["windows"]
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(about))
        contexts = self.record.frontier.shape[1]
        rule = rules.make(config["rule"], **config["constants"])
        self.curriculum = Curriculum(rule, contexts, config["levels"], seed=config["seed"], log_dir=folder)
        self.tables = {name: JsonLines(folder / f"{name}.jsonl") for name in ("evaluations", "metrics", "timing")}
        self.evaluated = 0

    def play(self, until):
        """Report the recorded outcomes up to window ``until``."""
        record = self.record
        for window in range(self.curriculum.windows, until):
            self.evaluate(window)
            cells = Cells(record.context[window].astype(np.int64), record.level[window].astype(np.int64))
            self.curriculum.report(cells, record.success[window])
            steps = int(record.environment_steps[window])
            self.tables["metrics"].append({"window": window, "environment_steps": steps})
            self.tables["timing"].append({"window": window, "seconds": self.seconds})
        self.evaluate(until)
        assert np.array_equal(self.curriculum.frontier, record.frontier[until - 1])

    def evaluate(self, window):
        record, i = self.record, self.evaluated
        if i < len(record.evaluated_at) and record.evaluated_at[i] == window:
            groups = {name: float(curve[i]) for name, curve in record.groups.items()}
            steps = int(record.environment_steps[window - 1]) if window else 0
            row = {"window": window, "environment_steps": steps, "success": float(record.outcomes[i].mean())}
            outcomes = record.outcomes[i].astype(int).tolist()
            self.tables["evaluations"].append({**row, "groups": groups, "outcomes": outcomes})
            self.evaluated += 1


def image(browser):
    """The window of the browser as it is."""
    from PIL import Image

    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        browser.picture(Path(file.name))
        return Image.open(io.BytesIO(Path(file.name).read_bytes())).convert("RGB")


def moving(browser, folder):
    """The frames of a run that grows."""
    run = Again(RECORD, folder / "doorkey-16-split/scout/102")
    run.play(WINDOWS[0])
    page, frames = Page(browser, Served(folder)), []
    page.show()
    (key,) = page.ids().values()
    page.show(f"#/run/{key}", **SIZE)
    browser.value("document.documentElement.style.scrollbarWidth = 'none'")
    for window in WINDOWS:
        run.play(window)
        browser.until(f"document.querySelector('main canvas').dataset.windows === '{window}'")
        browser.until(f"document.querySelector('.status').innerText.includes('{window} of')")
        browser.look(**SIZE)
        frames.append(image(browser))
    page.leave()
    return frames


def comparison(browser):
    """Three rules on one setting, by seed."""
    page = Page(browser, Served(COMPARED))
    page.show()
    name = "102-windows1000-evaluate_every10.npz"
    chosen = [f"{rule}/{seed}{name[3:]}" for rule in RULES for seed in range(100, 106)]
    ids = page.ids()
    page.show(f"#/compare/{','.join(ids[one] for one in chosen)}", **COMPARED_SIZE)
    browser.value("document.documentElement.style.scrollbarWidth = 'none'")
    browser.value("document.querySelector('.figure').scrollIntoView(); scrollBy(0, -8)")
    browser.look(**COMPARED_SIZE)
    picture = image(browser)
    page.leave()
    return picture


def take(out=IMAGES):
    """Write ``watch.gif`` and ``watch-compare.png``."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        frames = moving(browser, Path(folder) / "runs")
        picture = comparison(browser)
        browser.close()
    colours = frames[-1].copy()
    colours.paste(RETREAT, (0, 0, 200, 60))  # of a few pixels, and not to be mixed with its neighbours
    palette = colours.quantize(96, dither=Image.Dither.NONE)
    whole_first = frames[-1:] + frames[:-1]  # where pictures do not move, the first one is shown
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in whole_first]
    times = [LAST_MS] + [FRAME_MS] * (len(frames) - 1)
    moved = {"save_all": True, "append_images": small[1:], "duration": times, "loop": 0, "disposal": 1}
    small[0].save(out / "watch.gif", optimize=True, **moved)
    picture.quantize(96, dither=Image.Dither.NONE).save(out / "watch-compare.png", optimize=True)


if __name__ == "__main__":
    take()
    print(IMAGES / "watch.gif", IMAGES / "watch-compare.png", sep="\n")
