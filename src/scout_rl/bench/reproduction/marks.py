"""Generated tables inside pages that people write: between two marks, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from scout_rl.report.measure.tables import Table, markdown

END = "<!-- end -->"


def begin(name: str) -> str:
    """The mark above a table."""
    return f"<!-- {name}: written by make results -->"


def put_into(page: Path, name: str, table: Table) -> None:
    """Replace what stands between the table's two marks; a page without them is refused."""
    text = page.read_text("utf-8")
    head, mark, rest = text.partition(begin(name))
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{page} has no place for the table: put {begin(name)!r} and {END!r} there")
    without_title = markdown(table).split("\n\n", 1)[1].strip()
    page.write_text(f"{head}{mark}\n{without_title}\n{END}{tail}", "utf-8")


def between(page: Path, name: str) -> str:
    """What stands there."""
    return page.read_text("utf-8").partition(begin(name))[2].partition(END)[0]
