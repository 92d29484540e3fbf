"""Saving and restoring a learner's state. The replay is saved in segments that are written once.

A segment is a file with the episodes between two checkpoints; it never changes. A checkpoint names the segments that
its replay consists of. So a save writes only what is new, however large the replay is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from scout_rl.bench.learners.episodes import GoalEpisodes
from scout_rl.bench.learners.learner import State
from scout_rl.bench.learners.pytree import named, restored
from scout_rl.bench.learners.replay import Replay
from scout_rl.bench.run.checkpoint import Checkpoint

Arrays = dict[str, Any]


class Saved(NamedTuple):
    """The part of the replay that the newest checkpoint holds."""

    total: int = 0
    """Episodes added until then."""
    hashes: dict[str, str] = {}  # noqa: RUF012 (never changed)
    """Hashes of the segments by name, oldest first."""

    def next(self, state: State) -> tuple[Arrays, dict[str, Arrays], Saved]:
        """The next checkpoint: the learned arrays, the new segments, and the earlier ones that it still needs."""
        ring = state.replay
        if ring is None:
            return named(state.learned), {}, self
        total = int(ring.total)
        oldest = total - min(total, ring.capacity)
        begin = max(self.total, oldest)
        new = {_name(begin, total): _episodes(ring, begin, total)} if total > begin else {}
        needed = {name: sha for name, sha in self.hashes.items() if _range(name)[1] > oldest}
        return named(state.learned), new, Saved(total, needed)


def restore(like: State, checkpoint: Checkpoint, *, to_act: bool = False) -> tuple[State, Saved]:
    """The state of a checkpoint, in the shape of ``like``; do not use ``like`` afterwards.

    ``to_act`` leaves out the replay's episodes, for a checkpoint that was read without its shared files.
    """
    learned = restored(like.learned, checkpoint.parts["learner"])
    if like.replay is None:
        return State(learned), Saved()
    total = max((_range(name)[1] for name in checkpoint.hashes), default=0)
    n = 0 if to_act else like.replay.capacity
    rings = [np.zeros((n, *ring.shape[1:]), ring.dtype) for ring in like.replay.episodes]
    for name, arrays in checkpoint.shared.items():
        begin, end = _range(name)
        slots = np.arange(begin, end) % len(rings[0])
        for ring, field in zip(rings, GoalEpisodes._fields, strict=True):
            ring[slots] = arrays[field]
    replay = Replay(GoalEpisodes(*map(jnp.asarray, rings)), jnp.int32(total))
    return State(learned, replay), Saved(total, checkpoint.hashes)


def _episodes(ring: Replay, begin: int, end: int) -> Arrays:
    slots = np.arange(begin, end) % ring.capacity
    return {name: np.asarray(array)[slots] for name, array in ring.episodes._asdict().items()}


def _name(begin: int, end: int) -> str:
    return f"replay-{begin:09d}-{end:09d}"


def _range(name: str) -> tuple[int, int]:
    _, begin, end = name.split("-")
    return int(begin), int(end)
