"""Which environment holds which cell: tickets are issued, then finished or dropped.

A `Curriculum` draws cells and takes outcomes; it knows nothing of episodes. `Assignments` gives every episode a ticket.
An outcome counts once, for the cell of its ticket. An episode that never finishes does not count. Tickets in flight are
saved, and issued again after a load.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from scout_rl.curriculum import Curriculum, snapshot
from scout_rl.files.refusal import Refusal
from scout_rl.rules.cells import Event
from scout_rl.rules.rule import require

MOST_SLOTS = 1_000_000
"""More environments than this in a saved run mean a damaged file."""
LIKELY_CAUSE = (
    "a TimeLimit or another wrapper that ends episodes is likely outside {0} and belongs inside it, as in "
    "{0}(TimeLimit(env, ...), ...)"
)
"""Of episodes that end without our wrapper seeing it."""
FEW_CUTS, FEW_CUTS_EACH = 20, 3
"""Cut episodes before the warning, in all and per environment."""
_FIELDS = ("slot", "context", "level", "window")


class Ticket(NamedTuple):
    """One issued cell. A process uses each number once."""

    number: int
    context: int
    level: int
    window: int
    """Windows closed when the cell was drawn."""


class Staleness(NamedTuple):
    """The age of cells when their episodes started: windows closed since the cell was drawn."""

    starts: int
    mean: float
    largest: int


class Assignments:
    """The cells in flight of one curriculum. Make one, in the process that trains.

    Examples:
        >>> from scout_rl import Curriculum, rules
        >>> from scout_rl.integrations.assignments import Assignments
        >>> assignments = Assignments(Curriculum(rules.Ability(), n_contexts=4, n_levels=5))
        >>> slot = assignments.slot()
        >>> ticket = slot.issue()
        >>> events = slot.finish(ticket.number, success=True)
    """

    def __init__(self, curriculum: Curriculum) -> None:
        require(
            isinstance(curriculum, Curriculum),
            f"Assignments takes a Curriculum, not a {type(curriculum).__name__}",
        )
        self.curriculum = curriculum
        self.process: int | None = os.getpid()
        """The process of the curriculum; environments in other processes are sent their cells."""
        self.issued = 0
        self.finished = 0
        self.dropped = 0
        """Tickets of episodes that were reset before their end."""
        shape = (curriculum.n_contexts, curriculum.n_levels)
        self.outcomes: NDArray[np.int64] = np.zeros(shape, np.int64)
        """Outcomes per cell in this process, ``[contexts, levels]``."""
        self.successes: NDArray[np.int64] = np.zeros(shape, np.int64)
        self._cut = 0
        self._warned = False
        self._numbers = itertools.count()
        self._stale = (0, 0, 0)  # starts, sum, largest
        self._generation = 0
        self._slots: WeakKeyDictionary[Slot, None] = WeakKeyDictionary()
        self._to_reissue: deque[list[Ticket]] = deque()

    def __reduce__(self) -> tuple[Callable[[], Elsewhere], tuple[()]]:
        """Another process gets no curriculum."""
        return Elsewhere, ()

    def slot(self) -> Slot:
        """Return a place for one environment."""
        return Slot(self)

    @property
    def in_flight(self) -> list[Ticket]:
        """The tickets of all environments, and those to issue again."""
        return [ticket for _, ticket in self._held()]

    @property
    def staleness(self) -> Staleness:
        """The age of cells at their starts: 0 except for prefetched cells and cells issued again after a load."""
        starts, total, largest = self._stale
        return Staleness(starts, total / starts if starts else 0.0, largest)

    # -- saving ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the curriculum's state dict with the tickets in flight."""
        state = self.curriculum.state_dict()
        rows = [(slot, t.context, t.level, t.window) for slot, t in self._held()]
        columns = np.asarray(rows, np.int64).reshape(-1, len(_FIELDS)).T
        state["arrays"] |= {f"in_flight.{name}": column.copy() for name, column in zip(_FIELDS, columns, strict=True)}
        state["issued"] = self.issued
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue exactly: at its next reset, every environment gets the tickets that it held when saved.

        With fewer environments than before, the tickets of the missing ones are not issued.
        """
        snapshot.check(self.curriculum, state_dict)  # first: tickets of another size are no damage
        rows = self._saved_rows(state_dict)
        self.curriculum.load_state_dict(state_dict)
        self._generation += 1
        self._slots.clear()
        by_slot: dict[int, list[Ticket]] = {}
        for slot, context, level, window in rows:
            by_slot.setdefault(slot, []).append(Ticket(next(self._numbers), context, level, window))
        self._to_reissue = deque(by_slot.get(i, []) for i in range(max(by_slot, default=-1) + 1))
        self.issued = int(state_dict.get("issued", 0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one npz file, atomically and without pickle; ``Curriculum.load`` reads it too."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.curriculum.sync()
        snapshot.save(self.state_dict(), path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a file that `save` wrote."""
        self.load_state_dict(snapshot.load(path))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _held(self) -> list[tuple[int, Ticket]]:
        """Tickets in flight with the rank of their slot; slots that are not claimed yet come last."""
        places = [slot.tickets + list(slot.to_reissue) for slot in self._slots] + list(self._to_reissue)
        return [(rank, ticket) for rank, tickets in enumerate(places) for ticket in tickets]

    def _saved_rows(self, state_dict: dict[str, Any]) -> list[tuple[int, int, int, int]]:
        arrays = state_dict.get("arrays", {}) if isinstance(state_dict, dict) else {}
        if "in_flight.slot" not in arrays:
            return []  # a file of Curriculum.save: nothing was in flight
        columns = [np.asarray(arrays.get(f"in_flight.{name}")) for name in _FIELDS]
        if any(c.dtype.kind != "i" or c.shape != columns[0].shape or c.ndim != 1 for c in columns):
            raise Refusal("the state dict's tickets in flight are not four lists of whole numbers of one length")
        limits = (MOST_SLOTS, self.curriculum.n_contexts, self.curriculum.n_levels, np.inf)
        for name, column, limit in zip(_FIELDS, columns, limits, strict=True):
            if ((column < 0) | (column >= limit)).any():
                raise Refusal(f"the state dict's tickets in flight name an unknown {name}")
        return [tuple(row) for row in np.stack(columns, axis=1).tolist()]

    def _draw(self) -> Ticket:
        if multiprocessing.parent_process() is not None and os.getpid() != self.curriculum.process:
            raise RuntimeError(  # not in __init__: a worker's errors reach the main process only from reset()
                "cells were drawn from a copy of the curriculum in a worker process: make Assignments once, in the "
                "process that trains, outside the functions that make environments"
            )
        self.issued += 1
        return Ticket(next(self._numbers), *self.curriculum.assign_one(), self.curriculum.windows)

    def _note_cut(self) -> None:
        """Count a cut episode: reset after some steps without a seed or options. Warn once when most are cut."""
        self._cut += 1
        limit = max(FEW_CUTS, FEW_CUTS_EACH * len(self._slots))
        if self._cut > self.finished and self._cut >= limit and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._cut} of {self._cut + self.finished} episodes were reset before CurriculumEnv saw them end and "
                f"count for nothing: {LIKELY_CAUSE.format('CurriculumEnv')}",
                UserWarning,
                stacklevel=2,
            )


class Slot:
    """The tickets of one environment, oldest first. A garbage-collected slot holds none."""

    def __init__(self, assignments: Assignments) -> None:
        self.tickets: list[Ticket] = []
        self.to_reissue: deque[Ticket] = deque()
        self._assignments = assignments
        self._generation = -1

    def issue(self) -> Ticket:
        """Draw the next cell, or take one that was in flight when the run was saved."""
        assignments = self._assignments
        if self._generation != assignments._generation:
            self._generation = assignments._generation
            assignments._slots[self] = None
            saved = assignments._to_reissue.popleft() if assignments._to_reissue else []
            self.tickets, self.to_reissue = [], deque(saved)
        ticket = self.to_reissue.popleft() if self.to_reissue else assignments._draw()
        self.tickets.append(ticket)
        return ticket

    def start(self, ticket: Ticket) -> None:
        """Note that an episode started from this ticket's cell."""
        starts, total, largest = self._assignments._stale
        age = self._assignments.curriculum.windows - ticket.window
        self._assignments._stale = (starts + 1, total + age, max(largest, age))

    def finish(self, number: int, success: bool, signal: float | None = None) -> list[Event]:
        """Count the outcome of a ticket once. Tickets that were dropped, or issued before a load, do not count."""
        ticket, assignments = self._take(number), self._assignments
        if ticket is None:
            return []
        events = assignments.curriculum.record(ticket.context, ticket.level, success, signal)
        assignments.finished += 1
        assignments.outcomes[ticket.context, ticket.level] += 1
        assignments.successes[ticket.context, ticket.level] += success
        return events

    def drop(self, number: int, *, cut: bool = False) -> None:
        """Drop a ticket: its episode will not finish. ``cut``: the episode had steps, and no one asked for its end."""
        if self._take(number) is not None:
            self._assignments.dropped += 1
            if cut:
                self._assignments._note_cut()

    def _take(self, number: int) -> Ticket | None:
        if self._generation != self._assignments._generation:
            return None
        for i, ticket in enumerate(self.tickets):
            if ticket.number == number:
                return self.tickets.pop(i)
        return None


class Elsewhere:
    """Stands for `Assignments` in a worker process, where cells come over the vector environment."""

    process: int | None = None

    def slot(self) -> Slot:
        """Refuse: there is no curriculum here."""
        raise RuntimeError(
            "the curriculum lives in another process; wrap the vector environment in CurriculumVectorEnv"
        )
