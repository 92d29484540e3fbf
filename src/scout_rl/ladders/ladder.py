"""The ladder: the ordered starts of every context, one or several simulator states per cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, State, pack_states, unpack_states
from scout_rl.files.archive import Array, content_hash, read_archive, write_archive
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.attempts import Policy, solve_contexts
from scout_rl.ladders.progress import PROGRESS, Progress
from scout_rl.ladders.sources import Sources
from scout_rl.ladders.success import Success, success_reader
from scout_rl.ladders.trajectory import Trajectory

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 0.9)
"""Progress of levels 0..4 in the paper."""


def level_fractions(n_levels: int) -> tuple[float, ...]:
    """Progress of any number of levels: the paper's five, interpolated. Nine levels contain the five."""
    if n_levels < 2:
        raise Refusal(f"a ladder needs at least two levels, not {n_levels}")
    places = np.linspace(0, len(FRACTIONS) - 1, n_levels)
    return tuple(float(f) for f in np.interp(places, range(len(FRACTIONS)), FRACTIONS))


ResetTo = Callable[[Env, int, int], Any]
"""``reset_to(env, context, level)`` puts the environment at a start of that cell."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """States by cell: ``cells[context][level]`` holds one or several states, drawn uniformly."""

    cells: tuple[tuple[tuple[State, ...], ...], ...]
    fractions: tuple[float, ...] | None = None
    """The progress of each level, if the ladder comes from trajectories."""
    sources: Sources | None = None
    """The source of each context's states, if the ladder comes from policies."""

    def __post_init__(self) -> None:
        if not self.cells or not self.cells[0]:
            raise Refusal("a ladder needs at least one context and one level.")
        for context, levels in enumerate(self.cells):
            if len(levels) != len(self.cells[0]):
                raise Refusal(f"context {context} has {len(levels)} levels, and context 0 has {len(self.cells[0])}.")
            for level, states in enumerate(levels):
                if not states:
                    raise Refusal(f"cell ({context}, {level}) has no state.")

    def __repr__(self) -> str:
        codecs = ", ".join(sorted({state.codec for state in self._every_state()}))
        states = f"{len(self._every_state())} states of the {codecs} codec"
        return f"Ladder({self.n_contexts} contexts, {self.n_levels} levels, {states})"

    @property
    def n_contexts(self) -> int:
        """How many contexts there are."""
        return len(self.cells)

    @property
    def n_levels(self) -> int:
        """How many levels every context has; level 0 is the target start."""
        return len(self.cells[0])

    def states(self, context: int, level: int) -> tuple[State, ...]:
        """All states of a cell; an unknown cell is a ``ValueError``."""
        if not (0 <= context < self.n_contexts and 0 <= level < self.n_levels):
            raise Refusal(
                f"there is no cell ({context}, {level}) in a ladder of {self.n_contexts} contexts "
                f"and {self.n_levels} levels."
            )
        return self.cells[context][level]

    def draw(self, context: int, level: int, generator: np.random.Generator) -> State:
        """One state of the cell, drawn uniformly."""
        states = self.states(context, level)
        return states[int(generator.integers(len(states)))] if len(states) > 1 else states[0]

    @classmethod
    def from_states(cls, cells: Sequence[Sequence[State | Sequence[State]]]) -> Ladder:
        """From nested lists ``cells[context][level]``: a state, or a list of states."""
        return cls(tuple(tuple((c,) if isinstance(c, State) else tuple(c) for c in levels) for levels in cells))

    @classmethod
    def from_function(
        cls,
        env: Env,
        reset_to: ResetTo,
        n_contexts: int,
        n_levels: int,
        *,
        codec: Codec | None = None,
        samples: int = 1,
    ) -> Ladder:
        """From a function that puts ``env`` into a cell; called ``samples`` times per cell."""
        env.reset()
        codec = codec if codec is not None else codec_for(env)

        def state(context: int, level: int) -> State:
            reset_to(env, context, level)
            return codec.get_state(env)

        return cls(
            tuple(
                tuple(tuple(state(x, level) for _ in range(samples)) for level in range(n_levels))
                for x in range(n_contexts)
            )
        )

    @classmethod
    def from_trajectories(
        cls,
        trajectories: Sequence[Trajectory | Sequence[Trajectory]],
        fractions: Sequence[float] = FRACTIONS,
        progress: str | Progress = "time",
    ) -> Ladder:
        """From one successful trajectory per context, or from several for several states per cell.

        Level l starts in the state whose progress is nearest ``fractions[l]``. It lies before the first success and
        not before the state of the level below. ``progress`` is ``"time"`` (share of the steps), ``"path"`` (share of
        the achieved goal's path), ``"remaining"`` (share of the distance to the goal that is gone) or a function of
        the trajectory that returns one number per state.
        """
        fractions = tuple(float(f) for f in fractions)
        if not fractions or fractions[0] != 0.0 or any(b <= a for a, b in pairwise(fractions)) or fractions[-1] > 1.0:
            raise Refusal(f"fractions must start at 0 and rise to at most 1, not {fractions}.")
        if isinstance(progress, str) and progress not in PROGRESS:
            raise Refusal(f"progress is one of {', '.join(PROGRESS)} or a function, not {progress!r}.")
        measure = PROGRESS[progress] if isinstance(progress, str) else progress
        cells = []
        for context, entry in enumerate(trajectories):
            group = [entry] if isinstance(entry, Trajectory) else list(entry)
            rungs = [_rungs(trajectory, fractions, measure, context) for trajectory in group]
            cells.append(tuple(tuple(states) for states in zip(*rungs, strict=True)))
        return cls(tuple(cells), fractions)

    @classmethod
    def from_policy(
        cls,
        env: Env,
        policy: Policy,
        reset_to: ResetTo,
        n_contexts: int,
        *,
        fallbacks: Sequence[Policy] = (),
        trajectories: Sequence[Trajectory] | None = None,
        codec: Codec | None = None,
        attempts: int = 5,
        horizon: int = 1000,
        success: Success | None = None,
        fractions: Sequence[float] = FRACTIONS,
        progress: str | Progress = "time",
        seed: int = 0,
    ) -> Ladder:
        """From a policy's shortest success in each context, else a fallback's, else a recorded trajectory.

        ``reset_to(env, context, 0)`` puts ``env`` at the target start. From there ``policy(observation, generator)``
        plays ``attempts`` episodes of at most ``horizon`` steps. Each of the ``fallbacks`` then does the same in the
        contexts that are left. ``trajectories[context]`` comes last. A context without a success is a ``ValueError``.
        ``sources`` of the result holds the source of each context and the bootstrap fraction.
        """
        env.reset()
        solutions, sources = solve_contexts(
            env,
            codec if codec is not None else codec_for(env),
            (policy, *fallbacks),
            lambda context: reset_to(env, context, 0),
            n_contexts,
            trajectories,
            success_reader(success, env),
            attempts=attempts,
            horizon=horizon,
            seed=seed,
        )
        ladder = cls.from_trajectories(solutions, fractions, progress)
        return cls(ladder.cells, ladder.fractions, sources)

    def stack(self) -> dict[str, Array]:
        """The states as batch arrays ``[contexts, levels, ...]`` for a batch simulator.

        It holds the arrays that have equal shapes in all cells. If each cell has several states, the shape is
        ``[contexts, levels, states, ...]``.
        """
        counts = {len(states) for levels in self.cells for states in levels}
        if len(counts) > 1:
            raise Refusal(f"cells have {sorted(counts)} states: only equal numbers can be stacked.")
        every = self._every_state()
        shape = (self.n_contexts, self.n_levels, *((counts.pop(),) if counts != {1} else ()))
        stacked = {}
        for name, first in every[0].arrays.items():
            arrays = [state.arrays.get(name) for state in every]
            if all(a is not None and (a.shape, a.dtype) == (first.shape, first.dtype) for a in arrays):
                stacked[name] = np.stack([np.asarray(a) for a in arrays]).reshape(shape + first.shape)
        return stacked

    @cached_property
    def sha256(self) -> str:
        """The content hash."""
        return content_hash(*self._packed())

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write an npz file (no pickle); returns the content hash."""
        return write_archive(path, *self._packed())

    @classmethod
    def load(cls, path: str | os.PathLike[str], sha256: str | None = None) -> Ladder:
        """Read what `save` wrote; a damaged file, or one with another hash, is a ``ValueError``."""
        arrays, meta, stored_hash = read_archive(path)
        if meta.get("kind") != "ladder":
            raise Refusal(f"{path} holds no ladder.")
        if sha256 is not None and stored_hash != sha256:
            raise Refusal(f"{path} holds ladder {stored_hash[:12]}, not {sha256[:12]}.")
        states = unpack_states(arrays, meta["states"])
        cells = tuple(tuple(tuple(states[i] for i in cell) for cell in levels) for levels in meta["cells"])
        sources = Sources.from_dict(meta["sources"]) if "sources" in meta else None
        return cls(cells, None if meta["fractions"] is None else tuple(meta["fractions"]), sources)

    def _every_state(self) -> list[State]:
        return [state for levels in self.cells for states in levels for state in states]

    def _packed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, index = pack_states(self._every_state())
        numbers = iter(range(len(index)))
        cells = [[[next(numbers) for _ in states] for states in levels] for levels in self.cells]
        fractions = None if self.fractions is None else list(self.fractions)
        meta = {"kind": "ladder", "version": 1, "states": index, "cells": cells, "fractions": fractions}
        return arrays, meta if self.sources is None else {**meta, "sources": self.sources.as_dict()}


def _rungs(trajectory: Trajectory, fractions: Sequence[float], measure: Progress, context: int) -> list[State]:
    end = trajectory.first_success
    if end is None:
        raise Refusal(f"the trajectory of context {context} never succeeds: a ladder needs one that does.")
    try:
        values = np.asarray(measure(trajectory), dtype=np.float64)
    except ValueError as error:
        raise Refusal(f"context {context}: {error}") from error
    if values.shape != (len(trajectory.states),) or not np.isfinite(values[:end]).all():
        raise Refusal(f"progress of context {context} must be {len(trajectory.states)} finite numbers, one a state.")
    rungs, lowest = [trajectory.states[0]], 0
    for fraction in fractions[1:]:
        lowest += int(np.argmin(np.abs(values[lowest:end] - fraction)))
        rungs.append(trajectory.states[lowest])
    return rungs
