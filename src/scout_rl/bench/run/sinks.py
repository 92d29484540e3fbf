"""Sinks that receive a run's numbers besides its records: TensorBoard, W&B or trackio."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scout_rl.files.refusal import Refusal

Track = Literal["none", "tensorboard", "wandb", "trackio"]


class Sink(NamedTuple):
    """Receives scalars."""

    scalars: Callable[[int, dict[str, float]], None]
    """Write them at this window."""
    close: Callable[[], None]
    """Flush."""


def open_sink(track: Track, folder: Path, name: str, config: dict[str, Any]) -> Sink | None:
    """Open a sink; refuse one whose package is missing."""
    if track == "none":
        return None
    try:
        return _tensorboard(folder) if track == "tensorboard" else _service(track, name, config)
    except ModuleNotFoundError as missing:
        raise Refusal(f"--track {track} needs the package {missing.name!r}: pip install {track}") from missing


def _tensorboard(folder: Path) -> Sink:
    from tensorboard.summary import Writer

    writer = Writer(str(folder / "tensorboard"))

    def scalars(window: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, window)

    return Sink(scalars, writer.close)


def _service(package: str, name: str, config: dict[str, Any]) -> Sink:
    """W&B, or trackio, which has the same interface."""
    service = importlib.import_module(package)
    service.init(project="scout-rl", name=name, config=config)
    return Sink(lambda window, values: service.log({**values, "window": window}), service.finish)
