"""docs/environment.md: its blocks run in an empty folder and print what it shows; its tables are complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("minari")

from tests.docs.pages import blocks, in_order, run, text

PAGE = "environment.md"


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_the_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))  # the page sets it too; this undoes it
    names, printed = run(PAGE, capsys)
    in_order(PAGE, printed, skip=("runs/bottleneck",))
    assert "Corridor has none of _get_obs" in printed
    assert "say how it observes" in printed, "what the page quotes"
    assert "Corridor.steps is 6 after a restore: the episode is cut after 54 steps" in printed
    assert names["verdict"].ok
    assert names["info"].keys() == {"scout_context", "scout_level"}
    assert names["ladder"].sha256 == names["again"].sha256, "Minari keeps the states"
    assert (tmp_path / "ladder.npz").exists()
    assert names["validate"](names["dense"], names["Corridor"], codec=names["codec"]).ok

    command = [sys.executable, "-m", "scout_rl", "diagnose", "runs/bottleneck"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (shown,) = (block for block in blocks(PAGE, "text") if block.startswith("runs/bottleneck"))
    assert "never succeeds (2)" in shown
    assert shown.splitlines()[-1] in said.splitlines()


def test_every_codec_has_a_row():
    from scout_rl.codecs import REGISTRY

    for _, name, _ in REGISTRY:
        assert f"| `{name}` |" in text(PAGE)
