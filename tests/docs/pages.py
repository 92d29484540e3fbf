"""Run the Python blocks of a page, in order, in one scope."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def text(page: str) -> str:
    return (DOCS / page).read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.S | re.M)


def run(page: str, capsys) -> tuple[dict, str]:
    """The names that the page's blocks define, and what they print."""
    names: dict = {"__name__": "page"}
    capsys.readouterr()
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
    return names, capsys.readouterr().out


def in_order(page: str, printed: str, skip: tuple[str, ...] = ()) -> None:
    """Every output that the page shows was printed, in that order. ``skip``: beginnings of those that vary."""
    at = 0
    for shown in blocks(page, "text"):
        if shown.startswith(skip):
            continue
        where = printed.find(shown, at)
        assert where >= 0, f"docs/{page} shows, and its blocks do not print:\n{shown}"
        at = where + len(shown)
