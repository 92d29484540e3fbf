"""Generated parts of hand-written pages, between two marks."""

from __future__ import annotations

from pathlib import Path

from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.tables import Table, untitled

END = "<!-- end -->"


def begin(name: str) -> str:
    """The mark above a generated part."""
    return f"<!-- {name}: written by make results -->"


def put_into(page: Path, name: str, part: Table | str) -> None:
    """Write a table, or Markdown, between its two marks. A page without them is refused."""
    text = page.read_text("utf-8")
    head, mark, rest = text.partition(begin(name))
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise Refusal(f"{page} has no place for the table: put {begin(name)!r} and {END!r} there")
    written = part if isinstance(part, str) else untitled(part)
    page.write_text(f"{head}{mark}\n{written.strip()}\n{END}{tail}", "utf-8")
