"""docs/reproduction.md and the table of docs/results.md, from the committed records alone.

``python -m scout_rl.bench.reproduction.reproduction results docs docs/results.md``
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from scout_rl.bench.reproduction import paper
from scout_rl.bench.reproduction.catalogue import summaries
from scout_rl.bench.reproduction.durations import durations_table
from scout_rl.bench.reproduction.glance import MARK, glance_table
from scout_rl.bench.reproduction.headline import ENOUGH, headline
from scout_rl.bench.reproduction.judging import LOSES, RULES, TIE, VERDICTS
from scout_rl.bench.reproduction.marks import put_into
from scout_rl.bench.reproduction.verdicts import SOLVED_SHARE, Answer, Row, answer, rows
from scout_rl.report.measure.comparison import bootstrap_fraction, evaluated
from scout_rl.report.measure.conditions import PAPERS, Block, group
from scout_rl.report.measure.metrics import SOLVED, Summary
from scout_rl.report.measure.statistics import RESAMPLES
from scout_rl.report.measure.tables import MISSING, counted, shown, shown_interval, table_of, titled
from scout_rl.report.read.run import UNKNOWN
from scout_rl.report.show import figures

METRICS = {
    "auc": "AUC",
    "worst_auc": "worst-group AUC",
    "final": "final",
    "worst_final": "worst-group final",
    SOLVED_SHARE: "seeds solved",
    "retained": "R_retain",
    "self": "R_self",
}
MIXED = (
    "Two learners in one comparison: {}. Records of one side do not say what they ran on and are from an earlier "
    "learner, those of the other side say it; part of the difference may be the learner's."
)
INTRODUCTION = f"""# Reproduction

What our records say, row by row, beside the paper. This page is generated: `make results` rebuilds it from `results/`
alone, without any simulator, and no number or verdict on it is typed in.

Seeds 100 to 105 are evaluation seeds. A verdict on fewer than three seeds is a first impression, not evidence, and its
row says so. *Ours*: median over seeds for AUC (mean for `metaworld-conflict`), mean for final success; from three seeds
on a 95% interval from {RESAMPLES:,} seed resamples. *Seeds solved*: the share that ends at {SOLVED} or above.
*Difference*: SCOUT minus the rule, median over paired seeds (mean for seeds solved); for level counts, more levels
minus fewer. *Paper's difference*: the one that it prints; ≈: the difference of its two numbers, where it prints none.
Budgets, horizons and learners are ours ([settings](settings.md)), so compare differences, not areas.
All settings in one table, and what it says: [results](results.md). What was found out about rows that differ from the
paper: [disagreements](disagreements.md).

How long each took stands [at the end](#how-long-one-seed-takes-setting-by-setting). Any record can be trained again and
compared: `scout repeat results/SETTING/RULE/SEED.npz` ([what that promises](report.md#repeat-a-result)).

How verdicts follow from the numbers:

"""


def write(results: Path, docs: Path, summary: Path | None = None) -> Path:
    """Write ``docs/reproduction.md`` and its figures, and the table of all settings into the page ``summary``."""
    runs = summaries([results])
    blocks = [b for b in map(evaluated, group(runs, PAPERS)) if b is not None]
    answers = [answer(row, blocks) for row in rows()]
    parts = [INTRODUCTION + RULES + "\n", headline(answers), _machines_known(runs)]
    for setting, setting_answers in groupby(answers, key=lambda a: a.row.setting):
        parts.append(_section(setting, list(setting_answers), blocks, docs))
    parts.append(titled(durations_table(blocks)))
    page = docs / "reproduction.md"
    page.write_text("\n".join(parts).rstrip() + "\n", "utf-8")
    if summary is not None:
        put_into(summary, MARK, glance_table(list(dict.fromkeys(a.row.setting for a in answers)), blocks))
    return page


def _machines_known(runs: Sequence[Summary]) -> str:
    unknown = Counter(run.about.setting for run in runs if not run.about.ran_on)
    text = f"{len(runs)} records. "
    if not unknown:
        return text + "All say what they ran on.\n"
    where = ", ".join(f"`{setting}` {count}" for setting, count in unknown.items())
    return text + (
        f"{unknown.total()} do not say what they ran on (machine: {UNKNOWN}; {where}): they are from before runs "
        "kept that, and from an earlier learner. `scout repeat` finds differences in those that were tried; they are "
        "to be made again.\n"
    )


def _section(setting: str, answers: list[Answer], blocks: Sequence[Block], docs: Path) -> str:
    text = titled(table_of(setting, [_cells(a) for a in answers], _notes(answers)))
    picture = _picture(setting, blocks, docs)
    return text + (f"\n![{setting}: held-out success by windows]({picture})\n" if picture else "")


def _cells(a: Answer) -> dict[str, str]:
    """One row of the page, by column."""
    row = a.row
    theirs = f"{a.paper} ({a.paper.source})" if a.paper is not None else MISSING
    if row.expect == LOSES:
        theirs = f"{LOSES}; {theirs}" if a.paper is not None else LOSES
    minutes = [run.about.seconds / 60 for run in a.runs if run.about.seconds]
    verdict = f"**{a.verdict}**" if a.seeds and a.verdict in VERDICTS else a.verdict
    if a.claimed and 0 < a.seeds < ENOUGH:
        verdict = f"{a.verdict} (first impression)"
    return {
        "condition": _name(row),
        "measure": _measure(row) + (" (secondary)" if paper.secondary(row.setting, row.metric) else ""),
        "paper": theirs,
        "ours": shown_interval(a.ours, 3),
        "paper's difference": _paper_difference(a),
        "our difference": shown_interval(a.difference, 3, sign=True),
        "seeds": ", ".join(str(run.about.seed) for run in a.runs) or MISSING,
        "windows": ", ".join(sorted({str(run.about.windows) for run in a.runs})) or MISSING,
        "minutes per run": shown(sum(minutes) / len(minutes), 1) if minutes else MISSING,
        "machine": ", ".join(sorted({run.about.machine for run in a.runs})) or MISSING,
        "verdict": verdict,
    }


def _name(row: Row) -> str:
    words = [f"{row.ladder} ladder"] * (row.ladder != "manual") + [f"{row.levels} levels"] * (row.levels != 5)
    words += [f"preset {row.preset}"] * bool(row.preset)
    return f"`{row.rule}`" + (f" ({', '.join(words)})" if words else "")


def _measure(row: Row) -> str:
    return METRICS.get(row.metric, row.metric.replace(":", " "))


def _paper_difference(a: Answer) -> str:
    """As printed; ``≈`` or ``at least`` if it is the difference of two printed numbers."""
    row, number = a.row, a.paper
    if row.paper_ratio is not None:
        return f"{row.paper_ratio:g} times"
    if a.paper_difference is None:
        return (row.expect if row.expect != LOSES else "") or MISSING
    difference = f"{a.paper_difference:+.2f}"
    if row.paper_difference is not None or number is None:
        return difference
    if number.difference is None:
        return f"{'at least' if number.bound else '≈'} {difference}"
    return f"{difference} ({number.difference_source})" if number.difference_source else difference


def _notes(answers: Sequence[Answer]) -> list[str]:
    notes = _behind(answers)
    notes += [f"The paper on {_name(a.row)}: {a.row.says}." for a in answers if a.row.says]
    notes += [f"{_name(a.row)}: {a.note}." for a in answers if a.note]
    notes += [_areas(a) for a in answers if a.row.metric == "retained" and a.areas]
    notes += [_bootstrap(a) for a in answers if a.row.metric == "self" and a.runs]
    secondary = {paper.secondary(a.row.setting, a.row.metric): _measure(a.row) for a in answers}
    notes += [f"{m} is secondary here: {s.text} ({s.source})." for s, m in secondary.items() if s is not None]
    mixed = [f"{_name(a.row)} {_measure(a.row)}" for a in answers if a.mixed]
    if mixed:
        notes.append(MIXED.format(", ".join(mixed)))
    runs = {run.about.name: run for a in answers for run in a.runs}.values()
    if runs:
        notes.append(f"{_time(list(runs))} Versions: {_versions(list(runs))}.")
    return ["  \n".join(notes)] if notes else []


def _behind(answers: Sequence[Answer]) -> list[str]:
    """Which rules are ahead of SCOUT on AUC, the paper's first measure, and by how much."""
    notes = []
    for metric in ("auc", "worst_auc"):
        differences = [(a.row, a.difference) for a in answers if a.row.metric == metric and not a.row.compare]
        ahead = [f"{_name(row)} ({d.point:+.2f})" for row, d in differences if d is not None and d.point < -TIE]
        notes += [f"SCOUT is behind on {METRICS[metric]} here: {', '.join(ahead)}."] if ahead else []
    return notes


def _areas(a: Answer) -> str:
    """The areas behind a share of gain, beside the paper's."""
    row = a.row
    conditions = (("target", "manual"), ("scout", "manual"), (row.rule, row.ladder))
    theirs = [paper.number(row.setting, rule, "mean_auc", ladder) for rule, ladder in conditions]
    paper_areas = " / ".join(str(n) if n is not None else MISSING for n in theirs)
    source = next((f" ({n.source})" for n in theirs if n is not None), "")
    ours = " / ".join(shown(area, 3) for area in reversed(a.areas))
    sides = "from the target start / with the hand-built ladder / with this one"
    return f"{_name(row)}, mean AUC {sides}: ours {ours}, the paper's {paper_areas}{source}."


def _bootstrap(a: Answer) -> str:
    theirs = paper.number(a.row.setting, a.row.rule, "bootstrap", a.row.ladder)
    beside = f"; the paper's {theirs} ({theirs.source})" if theirs is not None else ""
    return f"{_name(a.row)}: bootstrap fraction {bootstrap_fraction(a.runs)}{beside}."


def _time(runs: list[Summary]) -> str:
    seeds = counted(len({run.about.seed for run in runs}), "seed")
    minutes = sum(run.about.seconds for run in runs) / 60
    return f"{counted(len(runs), 'run')} of {seeds} took {minutes:.0f} minutes together."


def _versions(runs: list[Summary]) -> str:
    versions: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.about.versions.items():
            if name != "machine":
                versions.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {'/'.join(sorted(version))}" for name, version in versions.items())


def _picture(setting: str, blocks: Sequence[Block], docs: Path) -> str | None:
    """Learning curves of the setting's largest block (of the worst group if there are groups)."""
    setting_blocks = [b for b in blocks if b.setting == setting]
    if not setting_blocks:
        return None
    block = max(setting_blocks, key=lambda b: (len(b.conditions), len(b.runs)))
    return figures.save_curves(block, docs, f"reproduction-{setting}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m scout_rl.bench.reproduction.reproduction RESULTS DOCS [PAGE]")
    print(write(*map(Path, sys.argv[1:])))
