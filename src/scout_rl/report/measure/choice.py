"""Which block of runs answers for a setting where several could: by a stated order, and doubt is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.presets import PRESETS, preset_constants
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.measure.comparison import Runs
from scout_rl.report.measure.conditions import LEARNER_ADDED_LATER
from scout_rl.report.measure.names import USUAL

TUNED = "tuned"
OTHERS = tuple(name for name in PRESETS if name != TUNED)
Key = Callable[[Runs], tuple[bool, ...]]


class Choice(NamedTuple):
    """A block, and those that had as good a claim but no more runs."""

    block: Runs
    rivals: tuple[Runs, ...]

    @property
    def doubt(self) -> str:
        """What is to be said about the rivals; empty where there are none."""
        if not self.rivals:
            return ""
        others = ", ".join(rival.label for rival in self.rivals)
        return f"this is of {self.block.label}, chosen by the number of runs; {others} would answer as well"


def fitting(blocks: Sequence[Runs], setting: str, ladder: str, levels: int, preset: str) -> list[Runs]:
    """The blocks of a setting with that ladder and number of levels; of a preset that is not ours only if named."""
    return [
        b
        for b in blocks
        if (b.setting, ladder_of(b), levels_of(b)) == (setting, ladder, levels)
        and (preset_of(b) if preset_of(b) in OTHERS else "") == preset
    ]


def choose(blocks: Sequence[Runs], key: Key | None = None) -> Choice | None:
    """The block that is most the setting's own (`own_parts`), of equal ones that with the most runs; None of none."""
    order = key or own_parts
    best = min(blocks, key=lambda b: ([not part for part in order(b)], -size(b), b.label), default=None)
    if best is None:
        return None
    return Choice(best, tuple(b for b in blocks if b is not best and order(b) == order(best)))


def stands_for_its_setting(blocks: Sequence[Runs]) -> Choice | None:
    """The one block that counts for a setting.

    Preset tuned first, then the setting's own learner and budget, a hand-built ladder, five levels, and the rest of
    what `own_parts` asks for.
    """

    def order(block: Runs) -> tuple[bool, ...]:
        learner, budget, *rest = own_parts(block)
        plain = ladder_of(block) == USUAL["ladder"], levels_of(block) == USUAL["levels"]
        return preset_of(block) == TUNED, learner, budget, *plain, *rest

    return choose(blocks, order)


def own_parts(block: Runs) -> tuple[bool, ...]:
    """Whether learner, budget, bank, rollouts a window and the preset's constants are those of the setting's table."""
    own, fields = SETTINGS.get(block.setting), block.fields
    if own is None:
        return (False,) * 5
    algorithm, preset = fields.get("algorithm") or own.learner, preset_of(block)
    there = {**LEARNER_ADDED_LATER, **fields.get("learner", {})}
    asked = preset_constants(own, algorithm, preset) if preset in PRESETS else {}
    return (
        algorithm == own.learner,
        fields.get("windows") == own.windows,
        fields.get("bank") == pinned_hashes().get(block.setting),
        fields.get("episodes") == own.episodes,
        all(there.get(name) == value for name, value in asked.items()),
    )


def alike(one: Runs, other: Runs, but: Sequence[str]) -> bool:
    """Whether all that the runs of two blocks share is the same, but for the fields that are named."""
    fields = one.fields.keys() | other.fields.keys()
    return all(one.fields.get(name) == other.fields.get(name) for name in fields if name not in but)


def ladder_of(block: Runs) -> str:
    """Hand-built where nothing is said."""
    return str(block.fields.get("ladder", USUAL["ladder"]))


def levels_of(block: Runs) -> int:
    """Five where nothing is said."""
    return int(block.fields.get("levels", USUAL["levels"]))


def preset_of(block: Runs) -> str:
    """Ours where nothing is said."""
    return str(block.fields.get("preset", TUNED))


def size(block: Runs) -> int:
    """Runs in it."""
    return sum(len(condition.runs) for condition in block.conditions)
