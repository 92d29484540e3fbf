"""What docs/results.md compares, one screen per setting and preset, and the words for it.

Scores, ratios and words are those of `one_rule`. Only runs of one block of the report are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scout_rl.bench.reproduction import one_rule
from scout_rl.bench.reproduction.one_rule import EVALUATION, OURS, SCHEDULED, SEES_LABELS, Row, geometric_mean
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.measure import comparison
from scout_rl.report.measure.conditions import TUNED, Block, Condition, group
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.names import USUAL
from scout_rl.report.measure.statistics import Interval

ENOUGH = 5
"""Paired seeds from which a ratio has an interval and a word; fewer are a first impression."""
FEW = "a first impression"
STANDINGS = ("later", "open", "level", "first", FEW, "solved by no rule")


@dataclass(frozen=True)
class Screen:
    """One comparison: a setting with a preset, and one condition per rule, on evaluation seeds."""

    block: Block

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Windows to solve by rule: the earliest first, then the best at the end."""
        rows = {c.rule: one_rule.collect(c.runs)[self.block.setting][0] for c in self.block.conditions}
        return dict(sorted(rows.items(), key=lambda item: (geometric_mean(item[1].scores), -self.ends[item[0]])))

    @cached_property
    def ends(self) -> dict[str, float]:
        """Success of the worst group at the end by rule: mean over seeds."""
        return {c.rule: float(np.mean([run.worst_final for run in c.runs])) for c in self.block.conditions}

    @property
    def ours(self) -> Row | None:
        """Of `ability`."""
        return self.rows.get(OURS)

    @property
    def unsolved(self) -> bool:
        """Whether no rule solves it."""
        return not any(row.solved for row in self.rows.values())

    @property
    def first(self) -> list[str]:
        """The earliest of the rules without labels, all that are equal; where none solves, the best at the end."""
        rivals = {rule: row for rule, row in self.rows.items() if rule != SEES_LABELS} or self.rows
        order = {
            rule: -self.ends[rule] if self.unsolved else geometric_mean(row.scores) for rule, row in rivals.items()
        }
        return [rule for rule in rivals if np.isclose(order[rule], min(order.values()))]

    def ratio(self, rule: str) -> Interval | None:
        """`ability` over the rule; without bounds below `ENOUGH` pairs. None without pairs, or where neither solves."""
        ours, row = self.ours, self.rows[rule]
        if ours is None or row is ours or not (ours.solved or row.solved):
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
        """One of `STANDINGS`, among the rules without labels; empty without runs of `ability`."""
        if self.ours is None:
            return ""
        if self.unsolved:
            return STANDINGS[-1]
        words = {rule: self.word(rule) for rule in self.rows if rule != SEES_LABELS}
        if not any(words.values()):
            return FEW
        if "later" in words.values():
            return "later"
        return "first" if OURS in self.first else words[self.first[0]] or FEW


def screens(runs: Iterable[Summary]) -> list[Screen]:
    """One per setting and preset, in the settings' order: the block with the most runs of `ability`, then of all."""
    candidates: dict[tuple[str, str], list[Block]] = defaultdict(list)
    for block in group(runs, OURS):
        usual = block.ladder == USUAL["ladder"] and block.levels == USUAL["levels"]
        finished = comparison.evaluated(block)
        if not usual or "@" in block.setting or finished is None:
            continue
        own = on_evaluation_seeds(finished)
        if own.conditions:
            candidates[own.setting, own.preset].append(own)

    def runs_of_ours(block: Block) -> int:
        return sum(len(c.runs) for c in block.conditions if c.rule == OURS)

    order = {key: place for place, key in enumerate(SETTINGS)}
    keys = sorted(candidates, key=lambda key: (order.get(key[0], len(order)), key[0], key[1] != TUNED, key[1]))
    return [Screen(max(candidates[key], key=lambda b: (runs_of_ours(b), len(b.runs), b.label))) for key in keys]


def on_evaluation_seeds(block: Block) -> Block:
    """One condition per rule, named after it: default constants; of schedules the best on development seeds."""
    rows = [(one_rule.collect(c.runs)[block.setting][0], c) for c in block.conditions]
    best = next((row.label for row in one_rule.evaluated([row for row, _ in rows]) if row.rule == SCHEDULED), None)
    conditions = []
    for rule in dict.fromkeys(c.rule for c in block.conditions):
        chosen = next((c for row, c in rows if rule == SCHEDULED and row.label == best), block.of(rule))
        kept = () if chosen is None else tuple(run for run in chosen.runs if run.about.seed in EVALUATION)
        conditions += [Condition(rule, rule, kept)] if kept else []
    name = block.setting + (f" ({block.preset})" if block.preset != TUNED else "")
    return replace(block, label=name, conditions=tuple(conditions))


def profile(shown_screens: Sequence[Screen]) -> dict[str, tuple[int, list[float]]]:
    """By rule: its number of settings, and per run the windows to solve over the fastest rule's mean (inf: never).

    Settings that no rule solves are left out: they tell no rules apart, and not every rule was run there.
    """
    multiples: dict[str, tuple[int, list[float]]] = {}
    for screen in (screen for screen in shown_screens if not screen.unsolved):
        fastest = min(geometric_mean(row.scores) for row in screen.rows.values())
        for rule, row in screen.rows.items():
            n, earlier = multiples.get(rule, (0, []))
            own = [score / fastest if score < row.budget else np.inf for score in row.scores.values()]
            multiples[rule] = n + 1, earlier + own
    return multiples
