"""A table as a value, and as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.statistics import Interval

MISSING = "–"
"""Printed instead of an empty cell."""


@dataclass(frozen=True)
class Table:
    """Text cells, with rows as long as the header, and notes below the table."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise Refusal(f"table {self.title!r}: a row has {len(row)} cells, the header {len(self.header)}")

    def column(self, name: str) -> list[str]:
        """One column by its header."""
        index = self.header.index(name)
        return [row[index] for row in self.rows]


def table_of(title: str, rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()) -> Table:
    """A table of at least one row, from the cells of every row by column."""
    return Table(title, list(rows[0]), [list(row.values()) for row in rows], list(notes))


def counted(n: int, what: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def shown(value: float | None, digits: int = 2) -> str:
    """A number, or `MISSING`."""
    return MISSING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def shown_interval(interval: Interval | None, digits: int = 2, *, sign: bool = False) -> str:
    """``+0.18 [0.04, 0.29]``; the point alone where there are no bounds."""
    if interval is None or math.isnan(interval.point):
        return MISSING
    plus = "+" if sign else ""
    point = f"{interval.point:{plus}.{digits}f}"
    return f"{point} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]" if interval.bounded else point


def shown_seeds(have: Sequence[int], wanted: Sequence[int]) -> str:
    """``2 of 3 (no 102)``: how many, and which are missing."""
    lacking = [seed for seed in wanted if seed not in have]
    if not lacking:
        return str(len(have))
    named = ", ".join(str(seed) for seed in lacking[:6]) + (", …" if len(lacking) > 6 else "")
    return f"{len(have)} of {len(wanted)} (no {named})"


def markdown(table: Table) -> str:
    """A pipe table with its title and notes."""
    return f"**{table.title}**\n\n{untitled(table)}"


def titled(table: Table) -> str:
    """A pipe table with its title as a heading."""
    return f"## {table.title}\n\n{untitled(table)}"


def untitled(table: Table) -> str:
    """A pipe table without its title; columns after the first are right-aligned."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (table.header, *table.rows)]
    rule = ["---", *("---:" for _ in table.header[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
    notes = [f"\n{note}" for note in table.notes]
    return "\n".join([*lines, *notes]) + "\n"


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "Δ": r"$\Delta$",
        "≥": r"$\geq$",
        "…": r"\dots{}",
        "·": r"$\cdot$",
    }
)


def latex(table: Table) -> str:
    """A booktabs table, ready to compile."""
    lines = [" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in (table.header, *table.rows)]
    notes = [r"\par\smallskip{\footnotesize " + note.translate(_LATEX) + r"\par}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{table.title.translate(_LATEX)}}}",
            r"\small",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def as_csv(table: Table) -> str:
    """Header and rows, without title and notes."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([table.header, *table.rows])
    return buffer.getvalue()
