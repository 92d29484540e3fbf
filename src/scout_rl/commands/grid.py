"""A table of text cells on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rich import box
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


def narrow_grid(header: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> Table:
    """A grid for 80 columns: no lines between columns, long names above them folded, and no cell cut or folded."""
    titles = [_folded(name, [row[i] for row in rows]) for i, name in enumerate(header)]
    spacing: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False, "show_edge": False}
    table = grid(titles, rows, **spacing, **options)
    for column in table.columns:
        column.no_wrap = True
    return table


def _folded(name: str, cells: Sequence[str]) -> str:
    """The name in lines no longer than the longest cell, or than its own longest word."""
    return "\n".join(textwrap.wrap(name, max(map(len, [*cells, *name.split()])), break_on_hyphens=False))
