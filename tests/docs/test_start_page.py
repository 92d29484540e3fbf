"""The first page, done as it says: its blocks in one file, its commands, its output."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytest.importorskip("stable_baselines3")

from tests.docs.pages import DOCS, blocks, text

PAGE = "start.md"


def test_the_page_does_what_it_says(tmp_path):
    (tmp_path / "first.py").write_text("\n".join(blocks(PAGE, "python")))
    commands = [line for block in blocks(PAGE, "sh") for line in block.splitlines() if not line.startswith("pip ")]
    assert commands == ["python first.py", "scout picture runs/ability", "scout diagnose runs/ability"]
    printed = []
    for command in commands:
        name, *rest = command.split()
        start = [sys.executable, *(["-m", "scout_rl"] if name == "scout" else []), *rest]
        printed.append(subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert [printed[0]] == blocks(PAGE, "text")
    assert (tmp_path / "runs" / "ability" / "frontier.png").stat().st_size > 10_000
    assert "No context is stuck." in printed[2]

    again = subprocess.run([sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "Refusal: log_dir runs/plain" in again.stderr, "as the page warns"
    assert "Before you start the file again, delete `runs/plain` and `runs/ability`" in text(PAGE)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_examples_that_pages_name_exist(page):
    for path in re.findall(r"`(examples/\w+\.py)`", page.read_text()):
        assert (DOCS.parent / path).exists(), path


@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("*.md")))
def test_install_lines_name_extras_that_exist_and_no_index(page):
    import tomllib

    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for line in re.findall(r"pip install [^`\n]*(?:scout-rl|'\.\[)[^`\n]*", (DOCS / page).read_text()):
        assert "-e" in line or "git+" in line, f"{page}: the package is on no index: {line}"
        named = re.findall(r"\[(.*?)\]", line)
        assert {extra for names in named for extra in names.split(",")} <= extras.keys(), line
