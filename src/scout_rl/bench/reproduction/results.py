"""The generated part of docs/results.md: one screen per setting and a summary, from the committed records alone.

``python -m scout_rl.bench.reproduction.results docs docs/results.md results results-one-rule``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scout_rl.bench.reproduction import one_rule, results_figures
from scout_rl.bench.reproduction.catalogue import summaries
from scout_rl.bench.reproduction.marks import put_into
from scout_rl.bench.reproduction.one_rule import OURS, SCHEDULED, SEES_LABELS, geometric_mean
from scout_rl.bench.reproduction.screens import ENOUGH, FEW, STANDINGS, Screen, profile, screens
from scout_rl.report.measure import comparison
from scout_rl.report.measure.aggregate import aggregate_tables, one_per_setting
from scout_rl.report.measure.names import slug
from scout_rl.report.measure.statistics import FEWEST
from scout_rl.report.measure.tables import MISSING, Table, counted, shown, shown_interval, table_of, untitled

MARK = "setting by setting"
"""Name of the mark in docs/results.md."""
HEADING = f"## `{OURS}` beside the other rules\n"
READING = f"""
*Windows to solve*: until the worst group is at 0.9 and stays at 0.8 at the next two evaluations, on held-out contexts
and from the target start. Geometric mean over seeds; a run that is not solved counts as its budget. *Ratio*: windows of
`{OURS}` over those of the rule, by seed; below 1 `{OURS}` is earlier. *Earlier*: Student's 95% interval ends below 1.
*Level*: it ends below {one_rule.LEVEL}. *Later*: it begins above 1. *Open*: none of these. With fewer than {ENOUGH}
seeds in common there is no interval and no word: a first impression.

Rules have their own constants. `{SCHEDULED}` has the best of three lengths where several were tried on other seeds.
`{SEES_LABELS}` sees the labels, and is not counted when we say who is first. A screen compares runs of one budget and
one learner alone, with ladders built by hand. Other ladders and the paper's numbers: [reproduction](reproduction.md).
"""
FIGURES = f"""
In the figures: held-out success of the worst group. From {ENOUGH} seeds on the mean, with Student's 95% interval as a
band; with fewer seeds each is a thin line. In brackets the number of seeds.
"""
SUMMARY = f"""
Over the settings in which `{OURS}` and the rule have at least {FEWEST} seeds each. *IQM*: the mean of the middle half
of all runs' worst-group AUC. *P({OURS} better)*: how likely a run of `{OURS}` has the larger area than a run of the
rule in the same setting; 0.5 is a tie. Budgets are those of the screens below: a slow rule is cut off.
"""
TEST = f"""
**The test.** All comparisons below in which `{OURS}` has runs, whatever the number of seeds: the log ratio of windows
to solve, `{OURS}` over the rule, by setting and seed. One sign-flip test per rule with at least {ENOUGH} pairs, then
Holm's correction over the rules: [the test that was fixed](one-rule.md#the-test) before `{OURS}` was run on an
evaluation seed. *`{OURS}` earlier*: in so many pairs. A pair in which neither solves counts for neither.
"""
PROFILE = """
Each line: the share of a rule's runs whose worst group is solved within so many times the windows of the setting's
fastest rule. Higher and further left is better; a line that stays below 1 has runs that are not solved. Settings that
no rule solves are left out.
"""


def write(docs: Path, page: Path, *records: Path) -> None:
    """Write the part between its marks in ``page``, and its figures into ``docs``."""
    shown_screens = screens(summaries(records))
    sections = [section(screen, docs) for screen in shown_screens]
    parts = [HEADING, summary(shown_screens, docs) + READING + FIGURES, *sections]
    put_into(page, MARK, "\n".join(parts))


def section(screen: Screen, docs: Path) -> str:
    """A heading, the sentence, the figure and the table."""
    block, fields = screen.block, screen.block.fields
    picture = results_figures.save(results_figures.curves(block, ENOUGH), docs, f"results-{slug(block.label)}")
    heading = f"### `{block.setting}`{block.label.removeprefix(block.setting)}"
    budget = f"Budget: {fields['windows']:,} windows, evaluated every {fields['evaluate_every']}."
    image = f"![{block.label}: success of the worst group by windows]({picture})"
    return f"{heading}\n\n{sentence(screen)} {budget}\n\n{image}\n\n{_compact(table(screen))}"


def sentence(screen: Screen) -> str:
    """Who is first, and what `ability` is. Where it is neither first nor level, that comes first, in bold."""
    ours, first = screen.ours, screen.first
    missing = f"`{OURS}` has no runs here yet. " if ours is None else ""
    be = f"{' and '.join(f'`{rule}`' for rule in first)} {'is' if len(first) == 1 else 'are'}"
    if screen.unsolved:
        behind = f"**`{OURS}` is not the best at the end** ({shown(screen.ends.get(OURS))}). "
        lead = missing if ours is None or OURS in first else behind
        return f"{lead}No rule solves it; {be} best at the end ({shown(screen.ends[first[0]])}).{_few(screen)}"
    need, ratio = _windows(screen, first[0]), shown_interval(screen.ratio(first[0])) if ours is not None else ""
    own = "" if ours is None else _windows(screen, OURS)
    later = [rule for rule in screen.rows if screen.word(rule) == "later" and rule != SEES_LABELS]
    if later:
        rivals = (f"`{rule}` ({_windows(screen, rule)}; ratio {shown_interval(screen.ratio(rule))})" for rule in later)
        text = f"**`{OURS}` is later than {', '.join(rivals)}:** it needs {own} windows."
    elif ours is None or OURS in first:
        text = f"{missing}{be} first: {need} windows."
    elif screen.standing == "level":
        text = f"{be} first with {need} windows; `{OURS}` is level with {own} (ratio {ratio})."
    else:
        text = f"**`{OURS}` is not first:** it needs {own} windows; {be} first with {need} (ratio {ratio})."
    opened = ", ".join(f"`{rule}`" for rule in _open(screen))
    text += f" Open: {opened}." if opened else ""
    labelled = screen.rows.get(SEES_LABELS)
    if labelled is not None and geometric_mean(labelled.scores) < geometric_mean(screen.rows[first[0]].scores):
        word = screen.word(SEES_LABELS)
        text += f" `{SEES_LABELS}`, which sees the labels, needs {_windows(screen, SEES_LABELS)}"
        text += f" (`{OURS}` beside it: {word})." if word else "."
    return text + _few(screen)


def _compact(lines: Table) -> str:
    """A table whose rows take one line each on the site."""
    return f'<div class="compact" markdown>\n\n{untitled(lines)}\n</div>\n'


def _few(screen: Screen) -> str:
    """Says so where the first rule, or `ability` beside its nearest rival, has fewer than `ENOUGH` seeds."""
    rivals = [rule for rule in (*screen.first, *screen.rows) if rule not in (OURS, SEES_LABELS)]
    sides = [set(screen.rows[rule].scores) for rule in [*rivals[:1], *[OURS] * (screen.ours is not None)]]
    n = len(set.intersection(*sides)) if sides else 0
    return "" if n >= ENOUGH else f" {counted(n, 'seed')}: {FEW}."


def _windows(screen: Screen, rule: str) -> str:
    return f"{geometric_mean(screen.rows[rule].scores):,.0f}"


def table(screen: Screen) -> Table:
    """One row per rule, the earliest first."""
    block = screen.block
    word, reduce = comparison.over_seeds(block)
    areas = {s.condition.rule: s.worst_auc for s in comparison.scores(block)}
    lines = []
    for rule, row in screen.rows.items():
        n, when = len(row.scores), _windows(screen, rule) if row.solved else "never"
        beside = {"ratio [95%]": shown_interval(screen.ratio(rule)), f"`{OURS}` is": screen.word(rule) or MISSING}
        line = {
            "rule": row.label,
            "seeds": str(n),
            "windows to solve (solved)": f"{when} ({row.solved} of {n})",
            "worst group at the end": shown(screen.ends[rule]),
            f"its AUC ({word})": shown(float(reduce(areas[rule]))),
        }
        lines.append(line if screen.ours is None else line | beside)
    return table_of(block.label, lines)


def summary(shown_screens: Sequence[Screen], docs: Path) -> str:
    """Where `ability` stands, the aggregates over its settings, and the performance profile."""
    ours = [screen for screen in shown_screens if screen.ours is not None]
    sentences = [f"`{OURS}` has runs in {len(ours)} of {len(shown_screens)} comparisons."]
    for standing in STANDINGS:
        names = [f"`{screen.block.label}`{_remark(screen)}" for screen in ours if screen.standing == standing]
        sentences += [f"{standing.capitalize()}: {', '.join(names)}."] if names else []
    kept = [replace(s.block, conditions=tuple(c for c in s.block.conditions if len(c.runs) >= FEWEST)) for s in ours]
    scored = [(block, comparison.scores(block)) for block in kept if any(c.rule == OURS for c in block.conditions)]
    few = [f"`{block.label}`" for block in kept if all(c.rule != OURS for c in block.conditions)]
    text = " ".join(sentences) + "\n"
    for aggregated in aggregate_tables(scored):
        rows = [[f"`{rule}`", *cells] for rule, *cells in aggregated.rows]
        text += f"{SUMMARY}\n{_compact(replace(aggregated, rows=rows))}"
        lines = profile([Screen(block) for block, _ in one_per_setting(scored)[0]])
        picture = results_figures.save(results_figures.profile(lines), docs, "results-profile")
        text += f"\n![Performance profile]({picture})\n{PROFILE}"
    text += f"\nNot in the summary, with too few seeds: {', '.join(few)}.\n" if few else ""
    tested = one_rule.pooled_table([list(screen.rows.values()) for screen in ours], ENOUGH)
    return text + (f"{TEST}\n{_compact(tested)}" if tested.rows else "")


def _remark(screen: Screen) -> str:
    """Behind a setting's name: how many comparisons are open; of a first impression who is first."""
    if screen.standing == FEW:
        return " (first)" if OURS in screen.first else " (not first)"
    n = len(_open(screen)) if screen.standing == "first" else 0
    return f" ({n} open)" if n else ""


def _open(screen: Screen) -> list[str]:
    return [rule for rule in screen.rows if screen.word(rule) == "open" and rule != SEES_LABELS]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: python -m scout_rl.bench.reproduction.results DOCS PAGE RECORDS...")
    write(*map(Path, sys.argv[1:]))
