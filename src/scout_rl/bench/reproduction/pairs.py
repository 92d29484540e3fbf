"""docs/pairs.md: development runs that differ in one thing, from the committed records alone.

``python -m scout_rl.bench.reproduction.pairs results-development docs docs/disagreements.md``
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scout_rl.bench.reproduction.catalogue import catalogue
from scout_rl.bench.reproduction.marks import put_into
from scout_rl.records.tables import KINDS
from scout_rl.report.measure.comparison import evaluated, window_of
from scout_rl.report.measure.conditions import PAPERS, Block, Condition, group
from scout_rl.report.measure.metrics import RETREAT, Summary, summarise
from scout_rl.report.measure.names import slug
from scout_rl.report.measure.stuck import gate_constant
from scout_rl.report.measure.tables import MISSING, Table, shown, table_of, titled
from scout_rl.report.read.run import RunRecord
from scout_rl.report.read.runs import find, load
from scout_rl.report.show import figures

LAST = 5
"""The mean of this many last evaluations is printed: single evaluations vary much."""
MARK = "evidence gate"
"""Name of the mark in the page of reasons."""
PROBE = KINDS.index("antistall")
SCHEDULED = ("anneal", "reverse")
"""Rules whose pace is the length of their schedule."""
FASTER_GATE: dict[str, object] = {"n_min": 5}
"""The evidence gate of the fast variant."""
INTRODUCTION = f"""# Pairs: one thing varied at a time

Runs on development seeds that differ in one thing, behind the reasons in [disagreements](disagreements.md). This page
is generated: `make results` rebuilds it from `results-development/` alone, and no number on it is typed in. The runs
are those of `campaigns/reasons.toml`, whole; `scout campaign campaigns/reasons.toml --next 1` makes the next one that
is missing, and `scout repeat results-development/SETTING/RULE/SEED.npz` trains one again and compares.

One seed is a first impression ([how much it says](disagreements.md#how-much-one-seed-says)). Several seeds stand side
by side, in order. *AUC*: of the worst group, over the windows that the table names. *Solved at*: the window at which
the worst group reaches 0.9 and then stays above 0.8 twice. *Last {LAST}*: mean of the last {LAST} evaluations, each
group. *Probes*: of the moves toward harder starts, how many were probes of a stall (antistall).
"""
GATE = """`scout` with its own `n_min` of 15 outcomes per move, and with 5; beside them the fastest rule of the same
table that waits for nobody."""


@dataclass(frozen=True)
class Comparison:
    """The runs of one table: one setting and preset."""

    title: str
    protocols: tuple[Block, ...]
    """Blocks whose conditions differ only in rule and constants."""
    rows: Block
    """All conditions as one block, with labels that distinguish the rows."""


def write(records: Path, docs: Path, reasons: Path | None = None) -> Path:
    """Write ``docs/pairs.md`` and its figures, and the table of the evidence gate into ``reasons``."""
    probes: dict[str, str] = {}
    summaries = []
    known = catalogue()
    for path in find([records]):
        run = load(path, catalogue=known)
        summaries.append(summarise(run))
        probes[run.about.name] = probes_of(run)
    compared = list(comparisons(summaries))
    gate = gate_table(compared)
    if reasons is not None:
        put_into(reasons, MARK, gate)
    parts = [INTRODUCTION] + ([titled(gate)] if gate.rows else [])
    for comparison in compared:
        parts += [titled(table(comparison, probes)), _picture(comparison, docs)]
    page = docs / "pairs.md"
    page.write_text("\n".join(parts).rstrip() + "\n", "utf-8")
    return page


def comparisons(summaries: Sequence[Summary]) -> Iterator[Comparison]:
    """One comparison per setting and preset, in order."""
    by_table: dict[tuple[str, str], list[Block]] = defaultdict(list)
    for block in group(summaries, PAPERS):
        finished = evaluated(block)
        if finished is not None:
            by_table[block.setting, str(block.fields.get("preset", ""))].append(finished)
    for (setting, preset), blocks in sorted(by_table.items()):
        title = f"{setting} ({preset})" if preset else setting
        yield Comparison(title, tuple(blocks), Block(setting, title, blocks[0].fields, tuple(_rows(blocks)), PAPERS))


def _rows(blocks: Sequence[Block]) -> Iterator[Condition]:
    shared = set.intersection(*(set(_words(block)) for block in blocks))
    for block in blocks:
        distinct = [word for word in _words(block) if word not in shared]
        for condition in sorted(block.conditions, key=_plainest_first):
            words = distinct + [f"{name} {value}" for name, value in condition.changed.items()]
            label = f"{condition.rule} ({', '.join(words)})" if words else condition.rule
            yield Condition(condition.rule, label, condition.runs)


def _words(block: Block) -> list[str]:
    """The words in brackets of the block's label."""
    _, _, inner = block.label.partition(" (")
    return inner.removesuffix(")").split(", ") if inner else []


def table(comparison: Comparison, probes: dict[str, str]) -> Table:
    """One row per condition, with the values of its seeds side by side."""
    return table_of(comparison.title, [_row(comparison.rows, c, probes) for c in comparison.rows.conditions])


def _row(block: Block, condition: Condition, probes: dict[str, str]) -> dict[str, str]:
    """The cells of one condition by column."""
    window, groups, runs = window_of(block), block.groups, condition.runs
    last = f"last {LAST}: {' / '.join(groups)}" if len(groups) > 1 else f"last {LAST}"
    return {
        "run": f"`{condition.label}`",
        "seeds": ", ".join(str(seed) for seed in condition.seeds),
        f"AUC, {window[0]} to {window[1]:,}": ", ".join(shown(run.worst_auc(window)) for run in runs),
        "solved at": ", ".join(_solved(run) for run in runs),
        last: ", ".join(" / ".join(shown(float(run.groups[g][-LAST:].mean())) for g in groups) for run in runs),
        "probes": ", ".join(probes[run.about.name] for run in runs),
        "minutes": ", ".join(f"{run.about.seconds / 60:.1f}" for run in runs),
        "machine": ", ".join(sorted({run.about.machine for run in runs})),
    }


def gate_table(compared: Sequence[Comparison]) -> Table:
    """Every protocol with runs of SCOUT under its default constants and under the faster gate."""
    header = ["setting", "windows", "`n_min` 15: AUC; solved at", "`n_min` 5", "times as early", "a fast rule"]
    rows = []
    for protocol in (block for comparison in compared for block in comparison.protocols):
        slow = protocol.of(PAPERS)
        fast = next((c for c in protocol.conditions if c.rule == PAPERS and c.changed == FASTER_GATE), None)
        if slow is None or fast is None:
            continue
        window = window_of(protocol)
        others = [c for c in protocol.conditions if c.rule not in SCHEDULED and not gate_constant(c.rule)]
        best = max(others, key=lambda c: _area(c, window), default=None)
        fastest = MISSING if best is None else f"`{best.rule}`: {_results(best, window)}"
        early = ", ".join(_times(a, b) for a in slow.runs for b in fast.runs if a.about.seed == b.about.seed)
        results = _results(slow, window), _results(fast, window)
        rows.append([f"`{protocol.label}`", f"{window[1]:,}", *results, early, fastest])
    return Table("The evidence gate at a glance", header, rows, [GATE])


def _plainest_first(condition: Condition) -> tuple[bool, str, int, str]:
    return condition.rule != PAPERS, condition.rule, len(condition.changed), condition.label


def _times(slow: Summary, fast: Summary) -> str:
    if slow.solved_window is None or not fast.solved_window:
        return MISSING
    return f"{slow.solved_window / fast.solved_window:.1f}"


def probes_of(run: RunRecord) -> str:
    """``41 of 1,731``: how many moves toward harder starts are probes; `MISSING` without a frontier."""
    if run.frontier is None:
        return MISSING
    kinds = run.moves.kind
    return f"{np.count_nonzero(kinds == PROBE):,} of {np.count_nonzero(kinds != RETREAT):,}"


def _area(condition: Condition, window: tuple[int, int]) -> float:
    return float(np.mean([run.worst_auc(window) for run in condition.runs]))


def _results(condition: Condition, window: tuple[int, int]) -> str:
    return ", ".join(f"{shown(run.worst_auc(window))}; {_solved(run)}" for run in condition.runs)


def _solved(run: Summary) -> str:
    return "never" if run.solved_window is None else f"{run.solved_window:,}"


def _picture(comparison: Comparison, docs: Path) -> str:
    name = figures.save_curves(comparison.rows, docs, f"pairs-{slug(comparison.title)}")
    return f"![{comparison.title}: held-out success by windows]({name})\n"


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m scout_rl.bench.reproduction.pairs RECORDS DOCS [REASONS]")
    print(write(*map(Path, sys.argv[1:])))
