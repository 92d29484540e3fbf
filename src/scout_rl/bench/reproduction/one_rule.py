"""The tables of docs/one-rule.md: the rule `ability` against every other, from the committed records alone.

``python -m scout_rl.bench.reproduction.one_rule results-one-rule docs/one-rule.md``

A score is the window at which a run was solved, its budget where it was not. Ratios are `ability` over the other rule,
by seed; below 1 `ability` is earlier.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scout_rl.bench.reproduction.catalogue import summaries
from scout_rl.bench.reproduction.marks import put_into
from scout_rl.report.measure.conditions import changed
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.statistics import Interval, holm, mean_interval, sign_flip_test
from scout_rl.report.measure.tables import MISSING, Table, shown_interval

OURS = "ability"
SCHEDULED = "anneal"
"""Its length is chosen per setting, on development seeds."""
SEES_LABELS = "group-frontier"
"""Shown, but not in the test: no claim is made against it."""
EVALUATION, DEVELOPMENT = range(100, 106), range(40, 60)
LEVEL = 1.15
"""A ratio whose interval ends below this counts as level."""

Scores = dict[int, float]
"""Window at which a run was solved, by seed."""


class Row(NamedTuple):
    """One rule with its constants on one setting."""

    rule: str
    label: str
    """The rule and the constants that are not its own."""
    budget: int
    scores: Scores

    @property
    def solved(self) -> int:
        """How many seeds."""
        return sum(score < self.budget for score in self.scores.values())


def write(records: Path, page: Path) -> None:
    """Write every table between its marks in ``page``."""
    rows = collect(summaries([records]))
    main = {setting: part for setting, part in rows.items() if "@" not in setting}
    put_into(page, "trials", trials_table(main))
    put_into(page, "one thing at a time", parts_table(main))
    put_into(page, "settings", settings_table(main))
    put_into(page, "test", pooled_table([evaluated(part) for part in main.values()]))
    put_into(page, "other banks", settings_table({k: v for k, v in rows.items() if "@" in k}))


def collect(runs: Iterable[Summary]) -> dict[str, list[Row]]:
    """Rows by setting. Runs of different budgets are different rows."""
    scores: dict[tuple[str, str, str, int], Scores] = defaultdict(dict)
    for run in runs:
        about = run.about
        words = [f"{k} {v:g}" for k, v in changed(about.rule, about.config["constants"], None).items()]
        if about.rule == SCHEDULED:
            words = [f"T_anneal {about.config['constants']['T_anneal']}"]
        label = f"`{about.rule}`" + (f" ({', '.join(words)})" if words else "")
        solved = about.budget if run.solved_window is None else run.solved_window
        scores[about.setting, about.rule, label, about.budget][about.seed] = float(solved)
    rows: dict[str, list[Row]] = defaultdict(list)
    for (setting, rule, label, budget), by_seed in sorted(scores.items()):
        rows[setting].append(Row(rule, label, budget, by_seed))
    return dict(rows)


def of_seeds(row: Row, seeds: Iterable[int]) -> Scores:
    """The scores of these seeds."""
    return {seed: row.scores[seed] for seed in seeds if seed in row.scores}


def evaluated(rows: Sequence[Row]) -> list[Row]:
    """The rows with evaluation seeds; of the schedules the one that was best on development seeds."""
    best = min(
        (row for row in rows if row.rule == SCHEDULED and of_seeds(row, EVALUATION) and of_seeds(row, DEVELOPMENT)),
        key=lambda row: (geometric_mean(of_seeds(row, DEVELOPMENT)), row.label),
        default=None,
    )
    kept = [row for row in rows if row.rule != SCHEDULED or row is best]
    return [row._replace(scores=s) for row in kept if (s := of_seeds(row, EVALUATION))]


def geometric_mean(scores: Mapping[int, float]) -> float:
    """Over the seeds."""
    return float(np.exp(np.mean(np.log(list(scores.values())))))


def log_ratios(ours: Scores, theirs: Scores) -> list[float]:
    """By seed, over the seeds that both have."""
    return [float(np.log(ours[seed] / theirs[seed])) for seed in sorted(ours.keys() & theirs.keys())]


def ratio_interval(ours: Scores, theirs: Scores) -> Interval:
    """Geometric mean of the ratio, with the t interval of its logarithm."""
    return Interval(*(float(np.exp(end)) for end in mean_interval(np.array(log_ratios(ours, theirs)))))


def verdict(ratio: Interval) -> str:
    """In one word, from the interval alone."""
    if ratio.high < 1:
        return "earlier"
    if ratio.high < LEVEL:
        return "level"
    return "later" if ratio.low > 1 else "open"


def settings_table(rows: Mapping[str, Sequence[Row]]) -> Table:
    """Per setting and rule: windows to solve, and the ratio with its interval; the earliest rule first."""
    header = ["setting", "rule", "seeds", "windows to solve", "solved", "ratio [95%]", "`ability` is"]
    lines = []
    for setting, part in sorted(rows.items()):
        kept = sorted(evaluated(part), key=lambda row: geometric_mean(row.scores))
        ours = next((row for row in kept if row.rule == OURS), None)
        for row in kept:
            line = [f"`{setting}` ({row.budget:,})", row.label, str(len(row.scores))]
            line += [f"{geometric_mean(row.scores):.0f}", f"{row.solved} of {len(row.scores)}"]
            if ours is None or row is ours or not log_ratios(ours.scores, row.scores):
                lines.append([*line, MISSING, MISSING])
                continue
            ratio = ratio_interval(ours.scores, row.scores)
            lines.append([*line, shown_interval(ratio), verdict(ratio) if ratio.bounded else MISSING])
    return Table("Windows to solve", header, lines)


def pooled(settings: Iterable[Sequence[Row]]) -> dict[str, list[float]]:
    """Log ratios over all settings and seeds, by rival; `anneal` is one rival whatever its length."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for rows in settings:
        for ours in (row for row in rows if row.rule == OURS):
            for row in rows:
                if row.rule != OURS:
                    name = f"`{SCHEDULED}` (best length)" if row.rule == SCHEDULED else row.label
                    ratios[name] += log_ratios(ours.scores, row.scores)
    return dict(ratios)


def pooled_table(settings: Iterable[Sequence[Row]], fewest: int = 1) -> Table:
    """One sign-flip test per rival of ``fewest`` pairs, over settings and seeds; Holm over those without labels."""
    ratios = {name: values for name, values in pooled(settings).items() if len(values) >= fewest}
    tested = sorted(name for name in ratios if f"`{SEES_LABELS}`" not in name)
    adjusted = dict(zip(tested, holm([sign_flip_test(np.array(ratios[n])) for n in tested]), strict=True))
    lines = []
    for name in sorted(ratios, key=lambda n: -np.mean(ratios[n])):
        p = f"{adjusted[name]:.2g}" if name in adjusted else "not tested: it sees the labels"
        earlier = sum(value < 0 for value in ratios[name])
        lines.append([name, str(len(ratios[name])), f"{np.exp(np.mean(ratios[name])):.2f}", str(earlier), p])
    return Table("The test", ["rule", "pairs", "ratio", "`ability` earlier", "p, after Holm"], lines)


def trials_table(rows: Mapping[str, Sequence[Row]]) -> Table:
    """Every set of constants that was tried on development seeds: geometric mean of windows to solve by setting."""
    tried = sorted((setting, row.budget) for setting, part in rows.items() for row in part if _tried(row))
    cells = {
        (row.label, f"`{setting}` ({row.budget:,})"): f"{geometric_mean(scores):.0f} ({len(scores)})"
        for setting, part in rows.items()
        for row in part
        if _tried(row) and row.label not in _parts(part) and (scores := of_seeds(row, DEVELOPMENT))
    }
    return _by_rule("Trials", [f"`{setting}` ({budget:,})" for setting, budget in dict.fromkeys(tried)], cells)


def parts_table(rows: Mapping[str, Sequence[Row]]) -> Table:
    """`ability` with one constant changed, on development seeds: how many times the windows of the rule itself."""
    cells: dict[tuple[str, str], str] = {}
    columns = []
    for setting, part in sorted(rows.items()):
        whole = next((row for row in part if row.label == f"`{OURS}`" and of_seeds(row, DEVELOPMENT)), None)
        labels = _parts(part)
        if whole is None or not labels:
            continue
        columns.append(f"`{setting}`")
        for row in part:
            ratios = log_ratios(row.scores, whole.scores)
            if row.label in labels and row.budget == whole.budget and ratios:
                cells[row.label, columns[-1]] = f"{np.exp(np.mean(ratios)):.2f} ({len(ratios)})"
    return _by_rule("One thing at a time", columns, cells)


def _by_rule(title: str, columns: Sequence[str], cells: Mapping[tuple[str, str], str]) -> Table:
    """A table from its cells by label and column."""
    labels = sorted({label for label, _ in cells})
    lines = [[label, *(cells.get((label, column), MISSING) for column in columns)] for label in labels]
    return Table(title, ["rule", *columns], lines)


def _parts(rows: Sequence[Row]) -> set[str]:
    """The labels of `ability` with a changed constant."""
    return {row.label for row in rows if row.rule == OURS and row.label != f"`{OURS}`" and _tried(row)}


def _tried(row: Row) -> bool:
    """Schedules of the evaluation's budgets are in its own table."""
    return bool(of_seeds(row, DEVELOPMENT)) and not of_seeds(row, EVALUATION)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m scout_rl.bench.reproduction.one_rule RECORDS PAGE")
    write(*map(Path, sys.argv[1:]))
