"""Sinks that receive a run's numbers besides its records: TensorBoard, W&B or trackio."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

from scout_rl.files.refusal import Refusal

Track = Literal["none", "tensorboard", "wandb", "trackio"]


class Sink(Protocol):
    """Receives scalars."""

    def scalars(self, window: int, values: dict[str, float]) -> None:
        """Write them at this window."""

    def close(self) -> None:
        """Flush."""


def open_sink(track: Track, folder: Path, name: str, config: dict[str, Any]) -> Sink | None:
    """Open a sink; refuse one whose package is missing."""
    if track == "none":
        return None
    try:
        return _TensorBoard(folder) if track == "tensorboard" else _Service(track, name, config)
    except ModuleNotFoundError as missing:
        raise Refusal(f"--track {track} needs the package {missing.name!r}: pip install {track}") from missing


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        from tensorboard.summary import Writer

        self._writer = Writer(str(folder / "tensorboard"))

    def scalars(self, window: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, window)

    def close(self) -> None:
        self._writer.close()


class _Service:
    """W&B, or trackio, which has the same interface."""

    def __init__(self, package: str, name: str, config: dict[str, Any]) -> None:
        import importlib

        self._service = importlib.import_module(package)
        self._service.init(project="scout-rl", name=name, config=config)

    def scalars(self, window: int, values: dict[str, float]) -> None:
        self._service.log({**values, "window": window})

    def close(self) -> None:
        self._service.finish()
