"""The generated part of docs/results.md: one screen per setting and a summary, from the committed records alone.

``python -m scout_rl.bench.reproduction.results docs docs/results.md results results-one-rule``

Scores, ratios and their words are those of `one_rule`; only runs of one block of the report are compared.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from scout_rl.bench.reproduction import one_rule, results_figures
from scout_rl.bench.reproduction.catalogue import catalogue
from scout_rl.bench.reproduction.marks import put_into
from scout_rl.bench.reproduction.one_rule import EVALUATION, OURS, SCHEDULED, SEES_LABELS, Row, geometric_mean
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.measure import comparison
from scout_rl.report.measure.aggregate import Scored, aggregate_tables, one_per_setting
from scout_rl.report.measure.conditions import TUNED, Block, Condition, group
from scout_rl.report.measure.metrics import Summary, summarise
from scout_rl.report.measure.names import USUAL, slug
from scout_rl.report.measure.statistics import FEWEST, Interval
from scout_rl.report.measure.tables import MISSING, Table, shown, shown_interval, untitled
from scout_rl.report.read.runs import find, load

MARK = "setting by setting"
"""Name of the mark in docs/results.md."""
ENOUGH = 5
"""Paired seeds from which a ratio has an interval and a word; fewer are a first impression."""
STANDINGS = ("later", "open", "level", "first", "a first impression", "solved by no rule")
READING = f"""## `{OURS}` beside the other rules

*Windows to solve*: until the worst group is at 0.9 and stays at 0.8 at the next two evaluations, on held-out contexts and
from the target start. Geometric mean over seeds; a run that is not solved counts as its budget. *Ratio*: windows of
`{OURS}` over those of the rule, by seed; below 1 `{OURS}` is earlier. *Earlier*: the 95% interval (Student's) ends below
1. *Level*: it ends below {one_rule.LEVEL}. *Later*: it begins above 1. *Open*: none of these. With fewer than {ENOUGH}
seeds in common there is no interval and no word: a first impression.

Rules have their own constants. `{SCHEDULED}` has the best of three lengths where several were tried on other seeds.
`{SEES_LABELS}` sees the labels, and is not counted when we say who is first. A screen compares runs of one budget and
one learner alone; all ladders here are built by hand.
"""
FIGURES = f"""In the figures: held-out success of the worst group. From {ENOUGH} seeds on the mean, with its 95% interval (Student's)
as a band; with fewer seeds each is a thin line.
"""
SUMMARY = """*IQM*: the mean of the middle half of all runs. *P(ability better)*: how likely a run of `ability` has the larger area
than a run of the rule in the same setting; 0.5 is a tie."""
PROFILE = """Each line: the share of a rule's runs whose worst group is solved within so many times the windows of the setting's
fastest rule. Higher and further left is better; a line that stays below 1 has runs that never solve."""


@dataclass(frozen=True)
class Screen:
    """One comparison: a setting with a preset, and one condition per rule, on evaluation seeds."""

    block: Block

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Windows to solve by rule, the earliest first."""
        rows = [one_rule.collect(c.runs)[self.block.setting][0] for c in self.block.conditions]
        return {row.rule: row for row in sorted(rows, key=lambda row: geometric_mean(row.scores))}

    @property
    def ours(self) -> Row | None:
        """Of `ability`."""
        return self.rows.get(OURS)

    @property
    def first(self) -> Row:
        """The earliest rule without labels."""
        return next((row for row in self.rows.values() if row.rule != SEES_LABELS), next(iter(self.rows.values())))

    def ratio(self, rule: str) -> Interval | None:
        """`ability` over the rule; without bounds below `ENOUGH` pairs. None without pairs, or where neither solves."""
        ours, row = self.ours, self.rows[rule]
        if ours is None or row is ours or not (solved(ours) or solved(row)):
            return None
        n = len(one_rule.log_ratios(ours.scores, row.scores))
        interval = one_rule.ratio_interval(ours.scores, row.scores) if n else None
        return interval if interval is None or n >= ENOUGH else Interval(interval.point, np.nan, np.nan)

    def word(self, rule: str) -> str:
        """What `ability` is beside the rule; empty where there is no interval."""
        ratio = self.ratio(rule)
        return one_rule.verdict(ratio) if ratio is not None and ratio.bounded else ""

    @property
    def standing(self) -> str:
        """One of `STANDINGS`; empty without runs of `ability`."""
        if self.ours is None:
            return ""
        if not any(map(solved, self.rows.values())):
            return STANDINGS[-1]
        words = [self.word(rule) for rule in self.rows]
        if len(self.ours.scores) < ENOUGH or not any(words):
            return "a first impression"
        return "later" if "later" in words else "first" if self.first is self.ours else self.word(self.first.rule) or "open"


def solved(row: Row) -> int:
    """How many seeds."""
    return sum(score < row.budget for score in row.scores.values())


def write(docs: Path, page: Path, *records: Path) -> None:
    """Write the part between its marks in ``page``, and its figures into ``docs``."""
    known = catalogue()
    shown_screens = screens(summarise(load(path, catalogue=known)) for path in find(records))
    parts = [READING, summary(shown_screens, docs), FIGURES, *(section(screen, docs) for screen in shown_screens)]
    put_into(page, MARK, "\n".join(parts))


def screens(runs: Iterable[Summary]) -> list[Screen]:
    """One per setting and preset, in the order of the settings: the block with the most runs of `ability`, then of all."""
    candidates: dict[tuple[str, str], list[Block]] = defaultdict(list)
    for block in group(runs, OURS):
        usual = block.ladder == USUAL["ladder"] and block.levels == USUAL["levels"]
        finished = comparison.evaluated(block)
        if usual and "@" not in block.setting and finished is not None and (own := on_evaluation_seeds(finished)).conditions:
            candidates[own.setting, own.preset].append(own)

    def runs_of_ours(block: Block) -> int:
        return sum(len(c.runs) for c in block.conditions if c.rule == OURS)

    order = {key: place for place, key in enumerate(SETTINGS)}
    keys = sorted(candidates, key=lambda key: (order.get(key[0], len(order)), key[0], key[1] != TUNED, key[1]))
    return [Screen(max(candidates[key], key=lambda b: (runs_of_ours(b), b.size, b.label))) for key in keys]


def on_evaluation_seeds(block: Block) -> Block:
    """One condition per rule, named after it: default constants; of schedules the best on development seeds, if tried."""
    rows = [(one_rule.collect(c.runs)[block.setting][0], c) for c in block.conditions]
    best = next((row.label for row in one_rule.evaluated([row for row, _ in rows]) if row.rule == SCHEDULED), None)
    conditions = []
    for rule in dict.fromkeys(c.rule for c in block.conditions):
        chosen = next((c for row, c in rows if rule == SCHEDULED and row.label == best), block.of(rule))
        kept = () if chosen is None else tuple(run for run in chosen.runs if run.about.seed in EVALUATION)
        conditions += [Condition(rule, rule, kept)] if kept else []
    name = block.setting + (f" ({block.preset})" if block.preset != TUNED else "")
    return replace(block, label=name, conditions=tuple(conditions))


def section(screen: Screen, docs: Path) -> str:
    """A heading, the sentence, the figure and the table."""
    block, fields = screen.block, screen.block.fields
    picture = results_figures.save(results_figures.curves(block, ENOUGH), docs, f"results-{slug(block.label)}")
    seen = f"{fields['windows']:,} windows, evaluated every {fields['evaluate_every']}."
    image = f"![{block.label}: success of the worst group by windows]({picture})"
    return f"### `{block.setting}`{block.label.removeprefix(block.setting)}\n\n{sentence(screen)} {seen}\n\n{image}\n\n{untitled(table(screen))}"


def sentence(screen: Screen) -> str:
    """Who is first; whether `ability` is first, level or later. Where it is neither first nor level, that comes first."""
    ours, first, standing = screen.ours, screen.first, screen.standing
    lead = f"`{OURS}` has no runs here yet. " if ours is None else ""
    if not any(map(solved, screen.rows.values())):
        best = max(screen.block.conditions, key=lambda c: np.mean([run.worst_final for run in c.runs]))
        return f"{lead}No rule solves it; at the end the worst group is best off under `{best.rule}`." + _few(screen, best.rule)
    if ours is None:
        return f"{lead}`{first.rule}` is first: {_windows(first)}." + _few(screen, first.rule)
    later = [rule for rule in screen.rows if screen.word(rule) == "later"]
    if later:
        against = ", ".join(f"`{rule}` ({_windows(screen.rows[rule])}; ratio {_ratio(screen, rule)})" for rule in later)
        lead = f"**`{OURS}` is later than {against}.** It needs {geometric_mean(ours.scores):,.0f}."
    elif first is ours:
        lead = f"`{OURS}` is first: {_windows(first)}."
    elif standing == "level":
        lead = f"`{OURS}` is level with `{first.rule}`, the first: {_windows(ours)} against {_windows(first)}."
    else:
        lead = f"**`{OURS}` is not first: `{first.rule}` needs {_windows(first)}, `{OURS}` {geometric_mean(ours.scores):,.0f}**"
        lead += f" (ratio {_ratio(screen, first.rule)})."
    opened = [f"`{rule}`" for rule in screen.rows if screen.word(rule) == "open" and rule != SEES_LABELS]
    lead += f" Its seeds leave the comparison with {', '.join(opened)} open." if opened else ""
    labelled = screen.rows.get(SEES_LABELS)
    if labelled is not None and SEES_LABELS not in later and list(screen.rows).index(SEES_LABELS) < list(screen.rows).index(OURS):
        lead += f" `{SEES_LABELS}`, which sees the labels, needs {geometric_mean(labelled.scores):,.0f}."
    rivals = [rule for rule in screen.rows if rule != OURS]
    return lead + _few(screen, first.rule if first is not ours else rivals[0] if rivals else OURS)


def _few(screen: Screen, rule: str) -> str:
    """Says so where the comparison with the rule, or the rule's own mean, rests on fewer than `ENOUGH` seeds."""
    seeds = set(screen.rows[rule].scores)
    n = len(seeds if screen.ours is None else seeds & set(screen.ours.scores))
    return "" if n >= ENOUGH else f" {n} {'seed' if n == 1 else 'seeds'}: a first impression."


def _windows(row: Row) -> str:
    return f"{geometric_mean(row.scores):,.0f} windows"


def _ratio(screen: Screen, rule: str) -> str:
    return shown_interval(screen.ratio(rule))


def table(screen: Screen) -> Table:
    """One row per rule, the earliest first."""
    block = screen.block
    word, reduce = comparison.over_seeds(block)
    scores = {s.condition.rule: s for s in comparison.scores(block)}
    header = ["rule", "seeds", "windows to solve (solved)", "worst group at the end", f"its AUC ({word})"]
    header += ["ratio [95%]", f"`{OURS}` is"] if screen.ours is not None else []
    lines = []
    for rule, row in screen.rows.items():
        n, score = len(row.scores), scores[rule]
        when = f"{geometric_mean(row.scores):,.0f}" if solved(row) else "never"
        line = [row.label, str(n), f"{when} ({solved(row)} of {n})"]
        line += [shown(float(score.worst_final.mean())), shown(float(reduce(score.worst_auc)))]
        lines.append([*line, *[_ratio(screen, rule), screen.word(rule) or MISSING][: len(header) - len(line)]])
    return Table(block.label, header, lines)


def summary(shown_screens: Sequence[Screen], docs: Path) -> str:
    """Where `ability` stands, the aggregates over its settings, and the performance profile."""
    ours = [screen for screen in shown_screens if screen.ours is not None]
    sentences = [f"`{OURS}` has runs in {len(ours)} of {len(shown_screens)} comparisons."]
    for standing in STANDINGS:
        names = [f"`{screen.block.label}`" for screen in ours if screen.standing == standing]
        sentences += [f"{standing.capitalize()}: {', '.join(names)}."] if names else []
    scored, few = [], []
    for screen in ours:
        kept = tuple(c for c in screen.block.conditions if len(c.runs) >= FEWEST)
        if any(c.rule == OURS for c in kept):
            block = replace(screen.block, conditions=kept)
            scored.append((block, comparison.scores(block)))
        else:
            few.append(screen.block.label)
    text = " ".join(sentences) + "\n"
    for aggregated in aggregate_tables(scored):
        rows = [[f"`{rule}`", *cells] for rule, *cells in aggregated.rows]
        text += f"\n{SUMMARY}\n\n{untitled(replace(aggregated, rows=rows))}"
        lines = profile([Screen(block) for block, _ in one_per_setting(scored)[0]])
        picture = results_figures.save(results_figures.profile(lines), docs, "results-profile")
        text += f"\n![Performance profile]({picture})\n\n{PROFILE}\n"
    left_out = f" Not in it yet, with fewer: {', '.join(few)}." if few else ""
    return text + f"\nThe summary takes rules with at least {FEWEST} seeds in a setting.{left_out}\n"


def profile(shown_screens: Sequence[Screen]) -> dict[str, tuple[int, list[float]]]:
    """By rule: its number of settings, and per run the windows to solve over the fastest rule's mean (inf: never)."""
    multiples: dict[str, tuple[int, list[float]]] = {}
    for screen in shown_screens:
        fastest = min(geometric_mean(row.scores) for row in screen.rows.values())
        for rule, row in screen.rows.items():
            n, earlier = multiples.get(rule, (0, []))
            own = [score / fastest if score < row.budget else np.inf for score in row.scores.values()]
            multiples[rule] = n + 1, earlier + own
    return multiples


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: python -m scout_rl.bench.reproduction.results DOCS PAGE RECORDS...")
    write(*map(Path, sys.argv[1:]))
