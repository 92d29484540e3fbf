"""R_retain and R_self: how much of the hand-built ladder's gain an automatic one keeps, of runs that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scout_rl.records.stored import SOURCES
from scout_rl.report.measure.choice import alike, choose, fitting
from scout_rl.report.measure.comparison import bootstrap_fraction
from scout_rl.report.measure.conditions import Block, Condition
from scout_rl.report.measure.metrics import Summary, common_window, retained
from scout_rl.report.measure.names import USUAL
from scout_rl.report.measure.statistics import Interval, generator, ratio_interval
from scout_rl.report.measure.tables import MISSING, Table, shown_interval

LEAST_GAIN = 0.05
"""Mean AUC that the hand-built ladder must gain over the target start before a share of it means anything."""
OF_THE_LADDER = ("ladder", *SOURCES)
"""The fields in which the automatic ladder's runs may differ from the others; in all else they are alike."""


class Ladders(NamedTuple):
    """The three conditions behind a share of gain."""

    auto: Condition
    by_hand: Condition
    target: Condition
    doubt: str
    """Which other runs would have answered as well; empty where there are none."""


class Retention(NamedTuple):
    """R_retain (solver ladder) or R_self (policy ladder)."""

    ratio: Interval
    areas: tuple[float, float, float]
    """Mean AUC with the automatic ladder, with the hand-built one, and from the target start."""
    n: int
    runs: tuple[Summary, ...]
    """With the automatic ladder, of the seeds that all three conditions have."""
    ladders: Ladders

    @property
    def gain(self) -> float:
        """Mean AUC of the hand-built ladder minus the target start's."""
        return self.areas[1] - self.areas[2]

    @property
    def defined(self) -> bool:
        """Whether there was a gain to retain."""
        return self.gain >= LEAST_GAIN


def three_ladders(
    blocks: Sequence[Block], setting: str, ladder: str, levels: int = 5, preset: str = ""
) -> Ladders | None:
    """The three conditions of a setting, alike in all but the ladder; None where one is missing.

    Where several blocks with that ladder have the other two beside them, `choose` says which.
    """
    whole = [b for b in fitting(blocks, setting, ladder, levels, preset) if _beside(b, blocks) is not None]
    choice = choose(whole)
    found = None if choice is None else _beside(choice.block, blocks)
    if choice is None or found is None:
        return None
    return found._replace(doubt="; ".join(told for told in (choice.doubt, found.doubt) if told))


def _beside(block: Block, blocks: Sequence[Block]) -> Ladders | None:
    """SCOUT in the block, and SCOUT and the target start in the block that has a hand-built ladder and is alike."""
    manual_blocks = (b for b in blocks if b.ladder == USUAL["ladder"])
    by_hand = next((b for b in manual_blocks if alike(b, block, OF_THE_LADDER)), None)
    if by_hand is None:
        return None
    auto, manual, target = block.of("scout"), by_hand.of("scout"), by_hand.of("target")
    if auto is None or manual is None or target is None:
        return None
    doubts = block.doubt("scout"), by_hand.doubt("scout"), by_hand.doubt("target")
    return Ladders(auto, manual, target, "; ".join(told for told in doubts if told))


def retention(
    blocks: Sequence[Block], setting: str, ladder: str, levels: int = 5, preset: str = ""
) -> Retention | None:
    """Of a setting, over the seeds and the window that all three conditions share; None where one is missing."""
    found = three_ladders(blocks, setting, ladder, levels, preset)
    if found is None:
        return None
    sides = found.auto.runs, found.by_hand.runs, found.target.runs
    window = common_window(run.at for side in sides for run in side)
    seeds = set.intersection(*({run.about.seed for run in side} for side in sides))
    if not seeds:
        return None
    auto, manual, target = (np.array([r.auc(window) for r in side if r.about.seed in seeds]) for side in sides)
    ratio = ratio_interval(auto, manual, target, retained, generator())
    areas = float(auto.mean()), float(manual.mean()), float(target.mean())
    mine = tuple(run for run in sides[0] if run.about.seed in seeds)
    return Retention(ratio, areas, len(seeds), mine, found)


def retention_table(blocks: Sequence[Block]) -> Table | None:
    """R_retain and R_self of every setting that has the three conditions for it."""
    rows, doubts = [], []
    for setting in sorted({block.setting for block in blocks}):
        for ladder, name in (("solver", "R_retain"), ("policy", "R_self")):
            found = retention(blocks, setting, ladder)
            if found is not None:
                ratio = shown_interval(found.ratio) if found.defined else MISSING
                fraction = bootstrap_fraction(found.runs)
                rows.append([setting, name, str(found.n), f"{found.gain:+.3f}", ratio, fraction])
                doubts += [f"{setting}, {name}: {found.ladders.doubt}."] if found.ladders.doubt else []
    if not rows:
        return None
    note = (
        f"Share of the hand-built ladder's gain in mean AUC over the target start; {MISSING}: no gain to keep. "
        "Bootstrap fraction, of ladders from policies: share of contexts that needed more than the target-start policy."
    )
    header = ["setting", "", "n", "gain of the hand-built ladder", "ratio [95%]", "bootstrap fraction"]
    return Table("Automatic ladders", header, rows, [note, *doubts])
