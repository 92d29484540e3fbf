"""Which block of runs answers for a setting where several could: by a stated order, and doubt is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from scout_rl.report.measure.conditions import LEARNER_ADDED_LATER, TUNED, Block
from scout_rl.report.measure.names import USUAL

Key = Callable[[Block], tuple[bool, ...]]


class Choice(NamedTuple):
    """A block, and those that had as good a claim but no more runs."""

    block: Block
    rivals: tuple[Block, ...]

    @property
    def doubt(self) -> str:
        """What is to be said about the rivals; empty where there are none."""
        if not self.rivals:
            return ""
        others = ", ".join(rival.label for rival in self.rivals)
        return f"this is of {self.block.label}, chosen by the number of runs; {others} would answer as well"


def fitting(blocks: Sequence[Block], setting: str, ladder: str, levels: int, preset: str) -> list[Block]:
    """The blocks of a setting with that ladder and number of levels; of a preset that is not ours only if named."""
    return [
        b
        for b in blocks
        if (b.setting, b.ladder, b.levels) == (setting, ladder, levels)
        and (b.preset if b.preset != TUNED else "") == preset
    ]


def choose(blocks: Sequence[Block], key: Key | None = None) -> Choice | None:
    """The block that is most the setting's own (`own_parts`), of equal ones that with the most runs; None of none."""
    order = key or own_parts
    best = min(blocks, key=lambda b: ([not part for part in order(b)], -b.size, b.label), default=None)
    if best is None:
        return None
    return Choice(best, tuple(b for b in blocks if b is not best and order(b) == order(best)))


def stands_for_its_setting(blocks: Sequence[Block]) -> Choice | None:
    """The one block that counts for a setting.

    Preset tuned first, then the setting's own learner and budget, a hand-built ladder, five levels, and the rest of
    what `own_parts` asks for.
    """

    def order(block: Block) -> tuple[bool, ...]:
        learner, budget, *rest = own_parts(block)
        plain = block.ladder == USUAL["ladder"], block.levels == USUAL["levels"]
        return block.preset == TUNED, learner, budget, *plain, *rest

    return choose(blocks, order)


def own_parts(block: Block) -> tuple[bool, ...]:
    """Whether learner, budget, bank, rollouts per window and the preset's constants are the setting's own."""
    own, fields = block.known, block.fields
    if own is None:
        return (False,) * 5
    algorithm = fields.get("algorithm") or own.learner
    constants = {**LEARNER_ADDED_LATER, **fields.get("learner", {})}
    asked = own.presets.get((algorithm, block.preset), {})
    return (
        algorithm == own.learner,
        fields.get("windows") == own.windows,
        fields.get("bank") == own.bank_sha256,
        fields.get("episodes") == own.episodes,
        all(constants.get(name) == value for name, value in asked.items()),
    )


def alike(one: Block, other: Block, but: Sequence[str]) -> bool:
    """Whether all that the runs of two blocks share is the same, but for the fields that are named."""
    fields = one.fields.keys() | other.fields.keys()
    return all(one.fields.get(name) == other.fields.get(name) for name in fields if name not in but)
