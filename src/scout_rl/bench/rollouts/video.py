"""A film of a policy from some cells: one tile per cell, contexts in rows, levels in columns, all played together.

The stock environment draws the pictures. Needs the ``video`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import StockEnv
from scout_rl.bench.rollouts.lockstep import Choose, Frame, lockstep
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

SUFFIXES = (".gif", ".mp4")
PER_SECOND = 8
LAST_SECONDS = 2
"""How long the last frame is shown."""
MOST_FRAMES = 240
"""When a film gets longer, every second frame is dropped, and then only every second step is rendered."""
STRIP, WIDTH = 30, 176
"""Pixels of a tile's caption: its height and its least width."""
RUNNING, SUCCEEDED, FAILED = (70, 70, 78), (24, 120, 62), (160, 44, 44)

Image = NDArray[np.uint8]


class Shown(NamedTuple):
    """One tile: an environment restored to its cell, its first observation, and the tile's name."""

    env: StockEnv
    first: Any
    name: str


@dataclass
class _Tile:
    """A cell's latest picture and the state of its episode."""

    name: str
    picture: Image
    colour: tuple[int, int, int] = RUNNING
    news: str = "start"

    def drawn(self) -> Image:
        """The picture below its caption."""
        from PIL import Image as Pillow
        from PIL import ImageDraw

        missing = max(0, WIDTH - self.picture.shape[1])
        picture = np.pad(self.picture, ((0, 0), (0, missing), (0, 0)), constant_values=255)
        strip = Pillow.new("RGB", (picture.shape[1], STRIP), self.colour)
        pen = ImageDraw.Draw(strip)
        pen.text((5, 3), self.name, fill=(255, 255, 255))
        pen.text((5, 16), self.news, fill=(235, 235, 235))
        return np.concatenate([np.asarray(strip, dtype=np.uint8), picture])


def film(choose: Choose, rows: Sequence[Sequence[Shown]], path: Path) -> NDArray[np.bool_]:
    """Play every cell and write a gif or an mp4; returns bool[rows, columns], which cells succeeded."""
    cells = [shown for row in rows for shown in row]
    tiles = [_Tile(shown.name, shown.env.render()) for shown in cells]
    frames = [_sheet(tiles, len(rows))]
    was_alive, steps, stride = np.ones(len(cells), dtype=bool), 0, 1

    def watch(frame: Frame) -> None:
        nonlocal was_alive, steps, stride
        steps += 1
        if len(frames) > MOST_FRAMES:
            frames[:] = frames[::2]
            stride *= 2
        shown = steps % stride == 0 or not frame.alive.any()
        for i in np.flatnonzero(was_alive):
            tile = tiles[i]
            if shown or not frame.alive[i]:
                tile.picture = cells[i].env.render()
            tile.news = f"step {steps}"
            if frame.success[i]:
                tile.colour, tile.news = SUCCEEDED, f"success, step {steps}"
            elif not frame.alive[i]:
                tile.colour, tile.news = FAILED, f"no success, {steps} steps"
        was_alive = frame.alive
        if shown:
            frames.append(_sheet(tiles, len(rows)))

    success = lockstep(choose, [shown.env for shown in cells], [shown.first for shown in cells], watch)
    _write(path, frames)
    return success.reshape(len(rows), -1)


def check_path(path: Path) -> None:
    """Refuse a path that cannot be written, before anything is played."""
    if path.suffix not in SUFFIXES:
        raise Refusal(f"a video is a {' or a '.join(SUFFIXES)} file, not {path.name!r}")
    with naming_extras("a video"):
        import imageio  # noqa: F401
    if not path.parent.is_dir():
        raise Refusal(f"{path} cannot be written: there is no folder {path.parent}")


def _sheet(tiles: Sequence[_Tile], n_rows: int) -> Image:
    """All tiles at the size of the largest, with margins; even numbers of pixels, which mp4 needs."""
    n = len(tiles) // n_rows
    drawn = [tile.drawn() for tile in tiles]
    height, width = (max(d.shape[axis] for d in drawn) + 6 for axis in (0, 1))
    drawn = [
        np.pad(d, ((3, height - 3 - d.shape[0]), (3, width - 3 - d.shape[1]), (0, 0)), constant_values=255)
        for d in drawn
    ]
    sheet = np.concatenate([np.concatenate(drawn[i * n : (i + 1) * n], axis=1) for i in range(n_rows)])
    height, width = sheet.shape[:2]
    return np.pad(sheet, ((0, height % 2), (0, width % 2), (0, 0)), constant_values=255)


def _write(path: Path, frames: list[Image]) -> None:
    import imageio.v2 as imageio

    shown = [*frames, *[frames[-1]] * (PER_SECOND * LAST_SECONDS)]
    options: dict[str, Any] = {"fps": PER_SECOND, "macro_block_size": 2}
    if path.suffix == ".gif":
        options = {"duration": 1000 / PER_SECOND, "loop": 0}
    writer: Any = imageio.get_writer(path, **options)
    with writer:
        for frame in shown:
            writer.append_data(frame)
