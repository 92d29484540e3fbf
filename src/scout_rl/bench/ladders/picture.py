"""A picture of a setting's ladder: rows are contexts, columns are levels. Needs the ``plot`` extra."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.picture import draw_grid

PIXELS = 240
"""Rendered along the longer side of a cell."""


def draw_ladder(
    family: Family,
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    ladder: States,
    path: Path,
    *,
    rows: Sequence[str],
    captions: Sequence[Sequence[str]],
    title: str,
) -> None:
    """Write a PNG of ``ladder`` [contexts, levels, ...]. A cell is the stock environment's picture, or a sketch."""

    def show_row(row: int) -> Callable[[Any, int], None]:
        states = [{name: array[row, level] for name, array in ladder.items()} for level in range(len(captions[row]))]
        if family.why_sketched():
            return lambda axis, level: family.sketch(axis, states[level], states[0])
        env = family.stock_env(setting, {name: array[row] for name, array in contexts.items()}, pixels=PIXELS)

        def show(axis: Any, level: int) -> None:
            env.restore(states[level])
            axis.imshow(env.render())

        return show

    draw_grid(path, show_row, rows, captions, title)
