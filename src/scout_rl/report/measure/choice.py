"""Which of several blocks of runs represents a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from scout_rl.report.measure.conditions import LEARNER_ADDED_LATER, TUNED, Block
from scout_rl.report.measure.names import USUAL

Key = Callable[[Block], tuple[bool, ...]]


class Choice(NamedTuple):
    """A block, and its rivals: those that match the setting as well and have no more runs."""

    block: Block
    rivals: tuple[Block, ...]

    @property
    def doubt(self) -> str:
        """A note that names the rivals; empty without any."""
        if not self.rivals:
            return ""
        others = ", ".join(rival.label for rival in self.rivals)
        return f"this is of {self.block.label}, chosen by the number of runs; {others} would answer as well"


def fitting(blocks: Sequence[Block], setting: str, ladder: str, levels: int, preset: str) -> list[Block]:
    """The blocks of that setting, ladder, number of levels and preset; an empty ``preset`` is `TUNED`."""
    return [
        b
        for b in blocks
        if (b.setting, b.ladder, b.levels) == (setting, ladder, levels)
        and (b.preset if b.preset != TUNED else "") == preset
    ]


def choose(blocks: Sequence[Block], key: Key | None = None) -> Choice | None:
    """The block that matches its setting best (`matches_setting`), then has the most runs; None without blocks."""
    order = key or matches_setting
    best = min(blocks, key=lambda b: ([not part for part in order(b)], -len(b.runs), b.label), default=None)
    if best is None:
        return None
    return Choice(best, tuple(b for b in blocks if b is not best and order(b) == order(best)))


def representative(blocks: Sequence[Block]) -> Choice | None:
    """The one block that counts for a setting.

    Preset tuned first, then the setting's learner and budget, a hand-built ladder, five levels, and the rest of
    `matches_setting`.
    """

    def order(block: Block) -> tuple[bool, ...]:
        learner, budget, *rest = matches_setting(block)
        usual = block.ladder == USUAL["ladder"], block.levels == USUAL["levels"]
        return block.preset == TUNED, learner, budget, *usual, *rest

    return choose(blocks, order)


def matches_setting(block: Block) -> tuple[bool, ...]:
    """Whether learner, budget, bank, rollouts per window and the preset's constants are the setting's."""
    known, fields = block.known, block.fields
    if known is None:
        return (False,) * 5
    algorithm = fields.get("algorithm") or known.learner
    constants = {**LEARNER_ADDED_LATER, **fields.get("learner", {})}
    preset_constants = known.presets.get((algorithm, block.preset), {})
    return (
        algorithm == known.learner,
        fields.get("windows") == known.windows,
        fields.get("bank") == known.bank_sha256,
        fields.get("episodes") == known.episodes,
        all(constants.get(name) == value for name, value in preset_constants.items()),
    )


def alike(block: Block, other: Block, except_for: Sequence[str]) -> bool:
    """Whether two blocks have the same fields, apart from those in ``except_for``."""
    fields = block.fields.keys() | other.fields.keys()
    return all(block.fields.get(name) == other.fields.get(name) for name in fields if name not in except_for)
