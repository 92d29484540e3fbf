"""A table of text cells on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rich.table import Table


def grid(
    header: Iterable[str], rows: Iterable[Sequence[str]], *, first: Literal["left", "right"] = "left", **options: Any
) -> Table:
    """The table; its first column is aligned as ``first`` says, the others to the right."""
    table = Table(**options)
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else first)
    for row in rows:
        table.add_row(*row)
    return table
