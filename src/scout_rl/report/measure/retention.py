"""R_retain and R_self: the share of the hand-built ladder's gain that an automatic ladder keeps."""

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
"""The hand-built ladder's gain in mean AUC over the target start must be at least this."""
OF_THE_LADDER = ("ladder", *SOURCES)
"""Only in these fields may the automatic ladder's runs differ from the others."""


class Ladders(NamedTuple):
    """The three conditions behind a share of gain."""

    auto: Condition
    by_hand: Condition
    target: Condition
    doubt: str
    """Names other runs that fit as well; empty without any."""


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
        """Whether the gain is large enough."""
        return self.gain >= LEAST_GAIN


def three_ladders(
    blocks: Sequence[Block], setting: str, ladder: str, levels: int = 5, preset: str = ""
) -> Ladders | None:
    """The three conditions of a setting, equal in all but the ladder; None where one is missing.

    `choose` selects among several blocks with that ladder.
    """
    complete = [b for b in fitting(blocks, setting, ladder, levels, preset) if _ladders_of(b, blocks) is not None]
    choice = choose(complete)
    ladders = None if choice is None else _ladders_of(choice.block, blocks)
    if choice is None or ladders is None:
        return None
    return ladders._replace(doubt="; ".join(doubt for doubt in (choice.doubt, ladders.doubt) if doubt))


def _ladders_of(block: Block, blocks: Sequence[Block]) -> Ladders | None:
    """SCOUT in the block; SCOUT and the target start in the block that differs only in its hand-built ladder."""
    manual_blocks = (b for b in blocks if b.ladder == USUAL["ladder"])
    by_hand = next((b for b in manual_blocks if alike(b, block, OF_THE_LADDER)), None)
    if by_hand is None:
        return None
    auto, manual, target = block.of("scout"), by_hand.of("scout"), by_hand.of("target")
    if auto is None or manual is None or target is None:
        return None
    doubts = block.doubt("scout"), by_hand.doubt("scout"), by_hand.doubt("target")
    return Ladders(auto, manual, target, "; ".join(doubt for doubt in doubts if doubt))


def retention(
    blocks: Sequence[Block], setting: str, ladder: str, levels: int = 5, preset: str = ""
) -> Retention | None:
    """A setting's retention over the common seeds and window of the three conditions; None where one is missing."""
    ladders = three_ladders(blocks, setting, ladder, levels, preset)
    if ladders is None:
        return None
    sides = ladders.auto.runs, ladders.by_hand.runs, ladders.target.runs
    window = common_window(run.at for side in sides for run in side)
    seeds = set.intersection(*({run.about.seed for run in side} for side in sides))
    if not seeds:
        return None
    auto, manual, target = (np.array([r.auc(window) for r in side if r.about.seed in seeds]) for side in sides)
    ratio = ratio_interval(auto, manual, target, retained, generator())
    areas = float(auto.mean()), float(manual.mean()), float(target.mean())
    runs = tuple(run for run in sides[0] if run.about.seed in seeds)
    return Retention(ratio, areas, len(seeds), runs, ladders)


def retention_table(blocks: Sequence[Block]) -> Table | None:
    """R_retain and R_self of every setting with the three conditions."""
    rows, doubts = [], []
    for setting in sorted({block.setting for block in blocks}):
        for ladder, name in (("solver", "R_retain"), ("policy", "R_self")):
            kept = retention(blocks, setting, ladder)
            if kept is not None:
                ratio = shown_interval(kept.ratio) if kept.defined else MISSING
                fraction = bootstrap_fraction(kept.runs)
                rows.append([setting, name, str(kept.n), f"{kept.gain:+.3f}", ratio, fraction])
                doubts += [f"{setting}, {name}: {kept.ladders.doubt}."] if kept.ladders.doubt else []
    if not rows:
        return None
    note = (
        f"Share of the hand-built ladder's gain in mean AUC over the target start; {MISSING}: no gain to keep. "
        "Bootstrap fraction, of ladders from policies: share of contexts that needed more than the target-start policy."
    )
    header = ["setting", "", "n", "gain of the hand-built ladder", "ratio [95%]", "bootstrap fraction"]
    return Table("Automatic ladders", header, rows, [note, *doubts])
