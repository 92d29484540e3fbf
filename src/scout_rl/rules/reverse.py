"""Synchronized reverse curriculum: shared start progress decays from 0.9 to 0 (appendix, baseline table, row 5)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scout_rl.rules.arrays import cast, namespace, smallest
from scout_rl.rules.cells import Array
from scout_rl.rules.rule import State, limited, require
from scout_rl.rules.unpaced import UnpacedRule, one_level

TIE = 1e-6
"""Two distances closer than this count as equal (32-bit floats cannot tell them apart)."""


@dataclass(frozen=True, kw_only=True)
class Reverse(UnpacedRule):
    """Shared start progress ``start * max(0, 1 - t/T)``; every context starts at the level with the nearest progress.

    Ours: a tie goes to the harder level. ``T`` is that of global annealing.
    """

    key: ClassVar[str] = "reverse"

    T: int = limited(2000, lambda T: 1 <= T <= 1e9, "T is {}, but a schedule has 1 to 1e9 windows")
    """Windows until the target start."""
    start: float = limited(0.9, lambda start: 0 < start <= 1, "start is {}, but progress lies in (0, 1]")
    """Progress of the first window's starts."""
    progress: tuple[float, ...] | None = None
    """Progress of every level, 0 first. None: {0, .25, .5, .75, .9} for five levels, else evenly spaced up to 0.9.
    The benchmark uses its ladder's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.progress is not None:
            object.__setattr__(self, "progress", tuple(float(p) for p in self.progress))
            rising = all(a < b for a, b in zip(self.progress, self.progress[1:], strict=False))
            require(rising, f"Reverse: progress {self.progress} must rise with the level")

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """Refuse a progress list that does not fit the ladder."""
        entries = n_levels if self.progress is None else len(self.progress)
        require(entries == n_levels, f"Reverse: progress has {entries} entries, the ladder {n_levels} levels")
        return super().init(n_contexts, n_levels, oracle_group)

    def levels(self, state: State) -> Array:
        """The shared level nearest to the shared progress."""
        t, success = state.statistics.window, state.statistics.success
        xp = namespace(success)
        progress = xp.asarray(self.fractions(success.shape[-1]), dtype=success.dtype)
        p = self.start * cast(xp.maximum(self.T - t, 0), success.dtype) / self.T
        distance = xp.abs(p[..., None] - progress)
        near = distance <= smallest(distance, keepdims=True) + TIE
        return one_level(state, xp.argmax(near, axis=-1))

    def fractions(self, n_levels: int) -> tuple[float, ...]:
        """Progress of every level."""
        if self.progress is not None:
            return self.progress
        if n_levels == 5:
            return (0.0, 0.25, 0.5, 0.75, 0.9)
        return tuple(np.linspace(0.0, 0.9, n_levels).tolist())
