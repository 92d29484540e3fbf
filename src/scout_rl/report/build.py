"""From records to a folder with the page, its tables and its figures. Only one run is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.aggregate import aggregate_tables
from scout_rl.report.measure.comparison import (
    comparison_table,
    evaluated,
    finished,
    mechanism_table,
    scores,
    with_holm,
)
from scout_rl.report.measure.conclusions import conclude
from scout_rl.report.measure.conditions import Block, group, with_names
from scout_rl.report.measure.metrics import Summary, summarise
from scout_rl.report.measure.names import file_names
from scout_rl.report.measure.retention import retention_table
from scout_rl.report.measure.solving import solving_table
from scout_rl.report.measure.tables import Table, as_csv, counted, latex, markdown
from scout_rl.report.read.catalogue import Catalogue
from scout_rl.report.read.runs import NO_CATALOGUE, find, load
from scout_rl.report.show.figures import draw_all, save
from scout_rl.report.show.heat import encode
from scout_rl.report.show.page import Entry, Part, render

DETAILED = 60
"""Up to this many runs the page also holds every context's status in every window (about 0.2 s and 4 KB per run)."""

HeatMap = tuple[tuple[str, ...], dict[str, Any]]
"""Group names, and the result of `encode`."""
UNEVALUATED = "No finished run with held-out evaluations: nothing is compared."
UNFINISHED = "No finished run: nothing is compared, and there is no table."


def report(
    paths: Sequence[Path],
    out: Path,
    *,
    groups: Path | None = None,
    reference: str = "",
    catalogue: Catalogue = NO_CATALOGUE,
    progress: Callable[[int], None] = lambda done: None,
) -> Path:
    """Write ``out/index.html``, ``out/tables`` and ``out/figures``; returns the page.

    ``reference`` is the key of the rule that others are compared with; a rule that no run has is refused.
    """
    records = find(paths)
    runs: dict[str, Summary] = {}
    maps: dict[str, HeatMap] = {}
    for i, path in enumerate(records):
        run = load(path, groups=groups, catalogue=catalogue)
        runs[run.about.name] = summarise(run)
        maps[run.about.name] = run.groups, encode(run, detailed=len(records) <= DETAILED)
        progress(i + 1)
    keys = dict.fromkeys(run.about.rule for run in runs.values())
    if reference and reference not in keys:
        raise Refusal(f"no run has the rule {reference!r} to compare with; the runs have {', '.join(sorted(keys))}")
    blocks = group(with_names(list(runs.values())), reference)
    parts, overall = _parts(blocks, out)
    out.mkdir(parents=True, exist_ok=True)
    page = out / "index.html"
    page.write_text(
        render("SCOUT report", _summary(runs.values(), blocks), parts, overall, _entries(maps, blocks)), "utf-8"
    )
    return page


def _parts(blocks: Sequence[Block], out: Path) -> tuple[list[Part], list[Table]]:
    usable = [(block, evaluated(block)) for block in blocks]
    corrected = iter(with_holm([scores(b) for _, b in usable if b is not None]))
    parts, compared, tables = [], [], []
    names = file_names([block.label for block in blocks])
    for (whole, block), name in zip(usable, names, strict=True):
        if block is None:
            finished_block = finished(whole)
            block_tables = {} if finished_block is None else {"training": mechanism_table(finished_block)}
            sentences, figures = [UNEVALUATED if block_tables else UNFINISHED], []
        else:
            block_scores = next(corrected)
            compared.append((block, block_scores))
            block_tables = {
                "success": comparison_table(block, block_scores),
                "training": mechanism_table(block),
                "solving": solving_table(block),
            }
            sentences, figures = conclude(block, block_scores), draw_all(block, block_scores)
        for figure in figures:
            save(figure, out / "figures" / name)
        parts.append(Part(whole.label, sentences, list(block_tables.values()), figures))
        tables += [(f"{name}-{kind}", table) for kind, table in block_tables.items()]
    retained = retention_table([b for _, b in usable if b])
    overall = [*aggregate_tables(compared), *([retained] if retained is not None else [])]
    tables += zip(file_names([table.title for table in overall]), overall, strict=True)
    write_tables(tables, out / "tables")
    return parts, overall


def write_tables(tables: Sequence[tuple[str, Table]], folder: Path) -> None:
    """Write NAME.md, NAME.tex and NAME.csv of each table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables:
        for ending, text in ((".md", markdown(table)), (".tex", latex(table)), (".csv", as_csv(table))):
            (folder / f"{name}{ending}").write_text(text, "utf-8")


def _entries(maps: dict[str, HeatMap], blocks: Sequence[Block]) -> list[Entry]:
    return [
        Entry(run.about, block.label, condition.label, *maps[run.about.name])
        for block in blocks
        for condition in block.conditions
        for run in condition.runs
    ]


def _summary(runs: Collection[Summary], blocks: Sequence[Block]) -> str:
    unfinished = sum(not run.about.finished for run in runs)
    hours = sum(run.about.seconds for run in runs) / 3600
    text = f"{counted(len(runs), 'run')}, {counted(len(blocks), 'comparison')}"
    text += f", {hours:.1f} hours of training" if hours else ""
    return text + (f"; {unfinished} not finished and in no table." if unfinished else ".")
