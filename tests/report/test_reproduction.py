"""The committed records alone give the committed page: no simulator, no learner, nothing typed in."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scout_rl.cli import main
from scout_rl.report.reproduction import write
from scout_rl.report.verdicts import rows
from scout_rl.rules import RULES
from scout_rl.settings import SETTINGS

ROOT = Path(__file__).parents[2]
BLOCK = """
import sys
REFUSED = "jax jaxlib equinox optax mujoco gymnasium gymnasium_robotics minigrid metaworld torch scipy".split()
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is not installed")
sys.meta_path.insert(0, Refuse())
"""


def without_simulators(code, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_committed_page_is_what_the_records_give(tmp_path):
    """`make results` after a change of results/ keeps it so."""
    code = "from pathlib import Path\nfrom scout_rl.report.reproduction import write\nwrite(*map(Path, sys.argv[1:]))"
    without_simulators(code, ROOT / "results", tmp_path)
    assert (tmp_path / "reproduction.md").read_text() == (ROOT / "docs/reproduction.md").read_text(), "run make results"
    for picture in (tmp_path / "images").iterdir():
        assert (ROOT / "docs/images" / picture.name).exists(), "run make results"
        assert picture.stat().st_size < 200_000


def test_the_commands_without_simulators(tmp_path):
    code = "from scout_rl.cli import main\nsys.exit(main(sys.argv[1:]))"
    few = ROOT / "results/multiroom"
    without_simulators(code, "report", few, "-o", tmp_path)
    table = (tmp_path / "tables/multiroom-success.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["rule", "scout", "anneal", "random", "target"]
    assert "contexts are stuck" not in without_simulators(code, "diagnose", few / "scout")


def test_every_row_asks_about_something_that_exists():
    asked = rows()
    for row in asked:
        assert row.setting in SETTINGS
        assert row.rule in RULES
        names = {group.name for group in SETTINGS[row.setting].groups}
        assert not row.metric.startswith("final:") or row.metric.removeprefix("final:") in names
        assert row.expect in ("", "ahead", "tie", "behind")
    assert {row.setting for row in asked} >= {"fetch-conflict", "fetch-withingroup", "fetch-air", "metaworld-conflict"}
    assert len({(r.setting, r.rule, r.metric, r.ladder, r.levels, r.preset) for r in asked}) == len(asked)


def test_a_known_number_of_the_committed_records():
    """doorkey-split, SCOUT, seed 100: the worst group's area computed here with plain NumPy."""
    with np.load(ROOT / "results/doorkey-split/scout/100.npz") as file:
        at, groups = file["evaluated_at"], file["groups"]
    area = min(np.trapezoid(groups[:, i], at) / at[-1] for i in range(groups.shape[1]))
    page = (ROOT / "docs/reproduction.md").read_text()
    section = page.split("## doorkey-split\n")[1].split("\n## ")[0]
    assert f"| `scout` | worst-group final | 0.92 (DoorKey pacing splits) | {groups[-1].min():.3f} |" in section
    with np.load(ROOT / "results/doorkey-split/anneal/100.npz") as file:
        other = min(
            np.trapezoid(file["groups"][:, i], file["evaluated_at"]) / file["evaluated_at"][-1] for i in range(2)
        )
    if "| `anneal` | worst-group AUC | – |" in section and "100 |" in section:
        assert f"{area - other:+.3f}" in section


def test_no_records_at_all(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    with pytest.raises(ValueError, match="results holds no records"):
        write(tmp_path / "results", tmp_path)
    assert main(["report", str(tmp_path / "results"), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("scout: ")
    assert not (tmp_path / "out").exists()
