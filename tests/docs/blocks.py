"""The fenced blocks of the pages, and what can be done with each kind."""

from __future__ import annotations

import ast
import functools
import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("sh", "bash", "console", "shell")
COMMANDS = ("scout", "make", "pip", "python", "git", "cd", "ray", "sbatch", "tensorboard", "export", "mkdir")
"""First words that make an unlabelled block a block of commands."""
FENCE = re.compile(r"^( *)(`{3,})([\w+-]*)[^\n]*\n(.*?)^\1\2 *$", re.M | re.S)


class Block(NamedTuple):
    """One fenced block; ``kind`` is python, commands, toml, text, or what no mechanism knows."""

    kind: str
    text: str
    line: int

    @property
    def commands(self) -> list[list[str]]:
        """The commands as words, without comments, prompts and output."""
        text = self.text.replace("\\\n", " ")
        if re.search(r"^\$ ", text, re.M):  # with prompts, all other lines are output
            text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
        return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        indent, _, label, body = match.groups()
        body = "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
        found.append(Block(_kind(label, body), body, text.count("\n", 0, match.start()) + 1))
    return found


def _kind(label: str, body: str) -> str:
    if label in SHELLS:
        return "commands"
    if label:
        return {"py": "python", "txt": "text"}.get(label, label)
    lines = [line.removeprefix("$ ") for line in body.splitlines() if line.strip() and not line.startswith("#")]
    if lines and all(line.split()[0] in COMMANDS for line in lines):
        return "commands"
    return "unlabelled python" if _is_python(body) else "text"


def _is_python(body: str) -> bool:
    """Whether it says something as Python: an assignment, a call, an import."""
    try:
        tree = ast.parse(body)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Assign | ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(tree))


@functools.cache
def own_test(page: Path) -> Path | None:
    """The file of the tests that name the page and run its Python blocks: its outputs are checked there too."""
    tests = sorted((ROOT / "tests/docs").glob("test_*_page*.py"))
    return next((test for test in tests if runs_python_of(page, test)), None)


def runs_python_of(page: Path, test: Path) -> bool:
    text = test.read_text()
    names_it = re.search(rf'(run|page)\("{page.name}"|PAGE = .*"{page.name}"', text)
    return bool(names_it) and any(way in text for way in ("run(", "exec(", "subprocess.run("))


@functools.cache
def make_targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
