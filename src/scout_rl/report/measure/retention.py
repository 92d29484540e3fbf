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


class Retention(NamedTuple):
    """R_retain (solver ladder) or R_self (policy ladder)."""

    ratio: Interval
    areas: tuple[float, float, float]
    """Mean AUC with the automatic ladder, with the hand-built one, and from the target start."""
    n: int
    runs: tuple[Summary, ...]
    """With the automatic ladder, of the seeds that all three conditions have."""
    sides: tuple[Condition, ...]
    """The three conditions, in the order of the areas."""
    doubt: str
    """Names other runs that fit as well; empty without any."""

    @property
    def gain(self) -> float:
        """Mean AUC of the hand-built ladder minus the target start's."""
        return self.areas[1] - self.areas[2]

    @property
    def defined(self) -> bool:
        """Whether the gain is large enough."""
        return self.gain >= LEAST_GAIN


def _sides(block: Block, blocks: Sequence[Block]) -> tuple[tuple[Condition, ...], list[str]] | None:
    """SCOUT in the block; SCOUT and the target start in the block that differs only in its hand-built ladder.

    With their doubts. None where one is missing.
    """
    manual_blocks = (b for b in blocks if b.ladder == USUAL["ladder"])
    by_hand = next((b for b in manual_blocks if alike(b, block, OF_THE_LADDER)), None)
    if by_hand is None:
        return None
    asked = (block, "scout"), (by_hand, "scout"), (by_hand, "target")
    conditions = tuple(condition for b, rule in asked if (condition := b.of(rule)) is not None)
    return (conditions, [b.doubt(rule) for b, rule in asked]) if len(conditions) == len(asked) else None


def retention(
    blocks: Sequence[Block], setting: str, ladder: str, levels: int = 5, preset: str = ""
) -> Retention | None:
    """A setting's retention over the common seeds and window of three conditions that are equal in all but the ladder.

    None where one is missing. `choose` selects among several blocks with that ladder.
    """
    choice = choose([b for b in fitting(blocks, setting, ladder, levels, preset) if _sides(b, blocks) is not None])
    complete = None if choice is None else _sides(choice.block, blocks)
    if choice is None or complete is None:
        return None
    conditions, doubts = complete
    window = common_window(run.at for side in conditions for run in side.runs)
    seeds = set.intersection(*(set(side.seeds) for side in conditions))
    if not seeds:
        return None
    paired = [[run for run in side.runs if run.about.seed in seeds] for side in conditions]
    auto, manual, target = (np.array([run.auc(window) for run in runs]) for runs in paired)
    ratio = ratio_interval(auto, manual, target, retained, generator())
    areas = float(auto.mean()), float(manual.mean()), float(target.mean())
    doubt = "; ".join(filter(None, (choice.doubt, *doubts)))
    return Retention(ratio, areas, len(seeds), tuple(paired[0]), conditions, doubt)


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
                doubts += [f"{setting}, {name}: {kept.doubt}."] if kept.doubt else []
    if not rows:
        return None
    note = (
        f"Share of the hand-built ladder's gain in mean AUC over the target start; {MISSING}: no gain to keep. "
        "Bootstrap fraction, of ladders from policies: share of contexts that needed more than the target-start policy."
    )
    header = ["setting", "", "n", "gain of the hand-built ladder", "ratio [95%]", "bootstrap fraction"]
    return Table("Automatic ladders", header, rows, [note, *doubts])
