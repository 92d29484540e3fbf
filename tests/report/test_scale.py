"""A thousand runs: under a minute, under 2 GiB, a page under 10 MB that a browser opens."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.browser import CHROMIUM, Browser
from tests.report.planted import config, curve, write_compact

ROOT = Path(__file__).parents[2]
RULES = (
    "scout",
    "anneal",
    "random",
    "target",
    "mixture",
    "local-frontier",
    "rfcl",
    "aced",
    "fixed",
    "plr",
    "alp",
    "reverse",
)
FRONTIERS = ("scout", "local-frontier", "rfcl", "aced")
SETTINGS = ("one", "two", "three", "four", "five", "six")
WINDOWS, CONTEXTS = 2400, 100


MEASURED = """
import atexit, os, re, sys
from pathlib import Path
from scout_rl.cli import main
def write(path=Path(sys.argv.pop(1))):
    peak = int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
    path.write_text(f"{sum(os.times()[:2])} {peak}")
atexit.register(write)
sys.exit(main())
"""
"""The command line, then its own time and memory. What `wait4` says of memory counts the process that started it."""


def wandering(rng):
    """A frontier with about as many moves as a real one (eight a context), some of them back."""
    steps = np.zeros((WINDOWS, CONTEXTS), np.int8)
    for x in range(CONTEXTS):
        where = np.sort(rng.choice(np.arange(100, WINDOWS), 8, replace=False))
        steps[where, x] = [-1, -1, 1, -1, -1, 1, -1, -1]
    return np.clip(4 + np.cumsum(steps, axis=0), 0, 4).astype(np.int8)


def thousand(folder):
    rng = np.random.default_rng(0)
    paths, at = [], np.arange(0, WINDOWS + 1, 20)
    for seed in range(100, 114):
        for setting in SETTINGS:
            for rule in RULES:
                if len(paths) == 1000:
                    return paths
                run_config = config(setting=setting, rule=rule, seed=seed, windows=WINDOWS, episodes=16)
                groups = {"easy": curve(rng.uniform(100, 500), at=at), "hard": curve(rng.uniform(500, 3000), at=at)}
                frontier = wandering(rng) if rule in FRONTIERS else None
                path = folder / setting / rule / f"{seed}.npz"
                paths.append(write_compact(path, run_config, groups, frontier=frontier, n_contexts=CONTEXTS))
    return paths


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_report_over_a_thousand_runs(tmp_path):
    assert len(thousand(tmp_path / "runs")) == 1000
    usage = tmp_path / "usage"
    subprocess.run(
        [sys.executable, "-c", MEASURED, usage, "report", tmp_path / "runs", "-o", tmp_path / "out"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    seconds, peak = map(float, usage.read_text().split())
    page = tmp_path / "out/index.html"
    print(f"{seconds:.1f} s of processor, {peak:.2f} GiB, {page.stat().st_size / 1e6:.1f} MB")
    assert seconds < 60  # one thread: its own time, whatever else the machine is doing
    assert peak < 2
    assert page.stat().st_size < 10e6
    if CHROMIUM is not None:
        browser = Browser(tmp_path / "profile")
        browser.open(page)
        browser.until("document.body.dataset.drawn")
        opened = browser.seconds()
        errors = browser.errors
        browser.close()
        assert errors == []
        assert opened < 10
