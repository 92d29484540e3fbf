"""The curriculum of asynchronous episodes as pure functions over arrays, the same for JAX and torch.

The package's docstring says what is counted, and when. One call is three steps: `taken` puts the outcomes of ended
episodes into the queue, `closed` closes a window if its episodes have all ended, `dealt` gives every finished
environment its next cell and a place in the queue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scout_rl.curriculum.checks import whole_number
from scout_rl.integrations.device.state import Outcome, State
from scout_rl.rules.arrays import apply_if, cast, namespace, put, search, smallest
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, require

REMEMBERED = 2**20
"""Outcomes that the log holds by default, in 4 MB; windows of more than 16,384 take more."""


@dataclasses.dataclass(frozen=True, eq=False)
class Episodes:
    """The sizes and the rule of a device curriculum; see the package's docstring."""

    rule: Rule
    n_contexts: int
    n_levels: int
    _: dataclasses.KW_ONLY
    environments: int
    """Environments that run side by side."""
    longest: int
    """Calls that an episode lasts at most: the simulator's time limit."""
    window: int = 0
    """Outcomes per window; 0: one per environment, at least 16."""
    queue: int = 0
    """Episodes that are remembered; 0: 8 per environment, at least four windows."""
    log: int = 0
    """Closed windows that are kept for `drain`; 0: as many as hold a million outcomes, at least 64.

    If more close between two drains, the records end at the first of the two.
    """
    oracle_group: ArrayLike | None = None
    """One label per context, for rules that use them."""
    one_cell: bool = dataclasses.field(init=False)
    """Whether the rule gives every context one active cell."""

    def __post_init__(self) -> None:
        require(isinstance(self.rule, Rule), f"rule is {self.rule!r}, but must be a rule such as rules.Ability()")
        for name in ("n_contexts", "n_levels", "environments", "longest", "window", "queue", "log"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        for name in ("environments", "longest"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}, but must be at least 1")
        window = self.window or max(16, self.environments)
        queue = self.queue or max(8 * self.environments, 4 * window)
        require(window >= 1, f"window is {window}, but a window has at least one outcome")
        require(queue >= window, f"queue is {queue}, but must hold a window of {window} outcomes")
        log = self.log or max(64, REMEMBERED // window)
        require(log >= 1, f"log is {log}, but must be at least 1")
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "queue", queue)
        object.__setattr__(self, "log", log)
        probabilities = self.rule.context_probabilities(
            self.rule.init(self.n_contexts, self.n_levels, self.oracle_group)
        )
        object.__setattr__(self, "one_cell", probabilities is not None)

    def blank(self) -> State:
        """NumPy arrays: no environment has a cell yet."""
        state = self.rule.init(self.n_contexts, self.n_levels, self.oracle_group)
        n, zero = self.environments, np.int32(0)

        def outcomes(*shape: int) -> Outcome:
            return Outcome(np.zeros(shape, np.int32), np.zeros(shape) if self.rule.needs_signal else None)

        nobody = np.zeros(n, np.int32)
        return State(
            rule=state,
            context=nobody,
            level=nobody,
            place=np.full(n, self.queue, np.int32),
            age=nobody,
            queue=outcomes(self.queue),
            queued=zero,
            uncounted=zero,
            named=zero,
            total=self.cumulated(state),
            deck=nobody,
            dealt=np.int32(n),
            decks=zero,
            log=outcomes(self.log, self.window),
            drained=zero,
            key=None,
        )

    def advanced(
        self,
        state: State,
        done: Array,
        success: Array,
        signal: Array | None,
        uniform: Callable[[State], Array],
    ) -> State:
        """One call. ``uniform(state)`` gives a random number in [0, 1) per environment.

        What most calls do not need is behind one condition: on a GPU each one waits for the device.
        """
        xp, state = namespace(state.age), self.taken(state, done, success, signal)
        ended = xp.cumsum(done, 0, dtype=xp.int32)

        def due(state: State) -> State:
            return self._dealt(self.closed(state), done, ended, uniform)

        is_due = self._ready(state) | self._used_up(state, ended)
        return self._assigned(apply_if(is_due, due, state), done & ~is_due, xp.where(is_due, 0, ended))

    def taken(self, state: State, done: Array, success: Array, signal: Array | None) -> State:
        """Write the outcomes of ended episodes to their places in the queue."""
        xp, nowhere = namespace(state.age), self.queue
        age = state.age + 1
        ended = done | (age >= self.longest)
        place = xp.where(ended, state.place, nowhere)
        code = 1 + 2 * (state.context * self.n_levels + state.level) + (done & success)
        queue = state.queue._replace(code=put(state.queue.code, place, code))
        if queue.signal is not None:
            queue = queue._replace(signal=put(queue.signal, place, cast(signal, queue.signal.dtype)))
        age = xp.minimum(age, self.longest)
        return state._replace(age=age, place=xp.where(ended, nowhere, state.place), queue=queue)

    def closed(self, state: State) -> State:
        """Close the next window if all of its episodes have ended."""
        return apply_if(self._ready(state), self._close, state)  # type: ignore[no-any-return]

    def _ready(self, state: State) -> Array:
        """Whether the first window's places are all taken, and none of them is still played."""
        return (state.queued >= self.window) & (smallest(state.place) >= self.window)

    def _close(self, state: State) -> State:
        xp, size = namespace(state.age), self.window
        window = Outcome(*(None if column is None else column[:size] for column in state.queue))
        rest = Outcome(
            *(None if c is None else xp.concatenate([c[size:], xp.zeros_like(c[:size])]) for c in state.queue)
        )
        rule = self.rule.update(state.rule, self.outcomes(window))
        row = state.rule.statistics.window % self.log
        log = Outcome(*(None if c is None else put(c, row, w) for c, w in zip(state.log, window, strict=True)))
        return state._replace(
            rule=rule,
            place=xp.where(state.place < self.queue, state.place - size, state.place),
            queue=rest,
            queued=state.queued - size,
            total=self.cumulated(rule),
            dealt=xp.full_like(state.dealt, self.environments),
            log=log,
        )

    def dealt(self, state: State, done: Array, uniform: Callable[[State], Array]) -> State:
        """Give every finished environment a cell from the deck, and a place in the queue while there is room."""
        xp = namespace(state.age)
        return self._dealt(state, done, xp.cumsum(done, 0, dtype=xp.int32), uniform)

    def _dealt(self, state: State, done: Array, ended: Array, uniform: Callable[[State], Array]) -> State:
        state = apply_if(self._used_up(state, ended), lambda s: self._deck(s, uniform(s)), state)
        return self._assigned(state, done, ended)

    def _used_up(self, state: State, ended: Array) -> Array:
        """Whether the deck has too few cards left; ``ended`` is the running count of ``done``."""
        return state.dealt + ended[-1] > self.environments

    def _assigned(self, state: State, done: Array, ended: Array) -> State:
        xp, n = namespace(state.age), self.environments
        count, rank = ended[-1], ended - 1
        card = state.deck[xp.clip(state.dealt + rank, 0, n - 1)]
        context, level = self.cells(state.rule, card)
        place = state.queued + rank
        counted = done & (place < self.queue)
        return state._replace(
            context=xp.where(done, context, state.context),
            level=xp.where(done, level, state.level),
            place=xp.where(counted, place, state.place),
            age=xp.where(done, 0, state.age),
            queued=xp.minimum(state.queued + count, self.queue),
            uncounted=state.uncounted + xp.maximum(state.queued + count - self.queue, 0),
            dealt=state.dealt + count,
        )

    def _deck(self, state: State, uniform: Array) -> State:
        xp, total = namespace(state.age), state.total
        index = search(total, uniform * total[-1], "right")
        index = cast(xp.minimum(index, len(total) - 1), xp.int32)
        return state._replace(deck=index, dealt=xp.zeros_like(state.dealt), decks=state.decks + 1)

    def cumulated(self, state: Any) -> Array:
        """The running sum of the distribution, over what `Curriculum` sums over."""
        p = self.rule.context_probabilities(state) if self.one_cell else self.rule.distribution(state).reshape(-1)
        return namespace(p).cumsum(p, 0)

    def cells(self, state: Any, index: Array) -> tuple[Array, Array]:
        """Context and level of indices into the running sum."""
        if self.one_cell:
            return index, cast(self.rule.frontier(state)[index], index.dtype)  # type: ignore[index]
        return index // self.n_levels, index % self.n_levels

    def outcomes(self, stored: Outcome) -> Outcomes:
        """What the rule takes."""
        xp, code = namespace(stored.code), namespace(stored.code).maximum(stored.code - 1, 0)
        cell = code // 2
        signal = xp.zeros_like(cell) if stored.signal is None else stored.signal
        return Outcomes(cell // self.n_levels, cell % self.n_levels, code % 2 == 1, signal, xp.ones_like(cell, bool))
