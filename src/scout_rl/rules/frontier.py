"""The engine of the frontier rules: one transition pass, and the base class that samples at the frontier.

Appendix "Controller-window semantics": every context is checked in every window. A frontier moves when a direction
holds in ``hysteresis`` consecutive eligible windows. Then a cooldown follows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from scout_rl.rules.arrays import at_level, cast, namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, State, Status


class Frontier(NamedTuple):
    """Where each context's frontier is and what holds it there: ``[..., contexts]``."""

    level: Array
    """``f``; starts at L."""
    cooldown: Array
    """Windows in which it may not move."""
    stale: Array
    """``d``: eligible windows since the frontier last moved."""
    pending: Array
    """Consecutive eligible windows with one direction: negative for harder, positive for easier."""
    moved: Array
    """The last pass: -1 advanced, 1 retreated, -2 advanced by antistall, 0 stayed."""


class Tests(NamedTuple):
    """A rule's tests of every context's frontier cell: booleans, ``[..., contexts]``."""

    enough: Array
    """The cell has enough evidence."""
    harder: Array
    easier: Array
    """The two threshold tests; never both."""
    hopeful: Array | None = None
    """A further condition of antistall; None: none."""


def init_frontier(n_rows: int, n_levels: int) -> Frontier:
    """Return frontiers at the easiest level, with nothing pending."""
    return Frontier(
        np.full(n_rows, n_levels - 1, np.int8),
        np.zeros(n_rows, np.int16),
        np.zeros(n_rows, np.int32),
        np.zeros(n_rows, np.int8),
        np.zeros(n_rows, np.int8),
    )


def transition(at: Frontier, tests: Tests, n_levels: int, *, cooldown: int, N_stale: int, hysteresis: int) -> Frontier:
    """Spec section 4, step 4, for all contexts; ``N_stale = 0`` turns antistall off."""
    xp = namespace(at.level)
    eligible = (at.cooldown == 0) & tests.enough
    stale = at.stale + eligible
    harder, probe = tests.harder, None
    if N_stale > 0:
        probe = (stale >= N_stale) & ~(tests.harder | tests.easier)
        if tests.hopeful is not None:
            probe = probe & tests.hopeful
        harder = harder | probe
    harder = harder & eligible & (at.level > 0)
    easier = tests.easier & eligible & (at.level < n_levels - 1)
    direction = cast(easier, xp.int8) - cast(harder, xp.int8)
    # A change of direction restarts the count at one. A window that is not eligible changes nothing.
    counted = direction + at.pending * (at.pending * direction > 0)
    pending = xp.where(eligible, counted, at.pending)
    moves = abs(pending) >= hysteresis
    moved = direction * moves
    stays = ~moves
    return Frontier(
        at.level + moved,
        xp.where(moves, xp.asarray(cooldown, at.cooldown.dtype), xp.maximum(at.cooldown - 1, 0)),
        stale * stays,
        pending * stays,
        moved if probe is None else moved - cast(moves & probe & harder, xp.int8),
    )


class FrontierRule(Rule):
    """A rule that gives every context one level. Subclasses define what to count and what to test."""

    cooldown: int = 0
    N_stale: int = 0
    hysteresis: int = 1

    @abstractmethod
    def observe(self, state: State, outcomes: Outcomes) -> State:
        """Count the window's outcomes; no frontier moves."""

    @abstractmethod
    def tests(self, state: State) -> Tests:
        """Test every frontier cell."""

    def update(self, state: State, outcomes: Outcomes) -> State:
        """Close one window: count, then one transition pass."""
        state = self.observe(state, outcomes)
        return state._replace(frontier=self.transition(state))

    def transition(self, state: State) -> Frontier:
        """One pass of Eq. 2, with this rule's tests, over every context."""
        return transition(
            state.frontier,
            self.tests(state),
            state.statistics.success.shape[-1],
            cooldown=self.cooldown,
            N_stale=self.N_stale,
            hysteresis=self.hysteresis,
        )

    def frontier(self, state: State) -> Array:
        """Return ``f``, ``[..., contexts]``."""
        return state.frontier.level

    def distribution(self, state: State) -> Array:
        """All probability at the active cells ``(x, f_x)``."""
        return at_level(self.context_probabilities(state), self.frontier(state), state.statistics.success.shape[-1])

    def moved(self, state: State) -> Array:
        """Return each context's last move: -1, 1, -2 or 0 (`Frontier.moved`)."""
        return state.frontier.moved

    def status(self, state: State) -> Array:
        """Return each context's ``Status``. Later lines win over earlier ones."""
        at, tests = state.frontier, self.tests(state)
        xp, easiest = namespace(at.level), state.statistics.success.shape[-1] - 1
        word = xp.where(tests.enough, Status.DEADBAND, Status.GATHERING)
        word = xp.where(at.cooldown > 0, Status.COOLING, word)
        word = xp.where(tests.enough & tests.easier & (at.level == easiest), Status.EASIEST, word)
        word = xp.where(at.level == 0, Status.TARGET, word)
        word = xp.where(at.pending != 0, Status.CONFIRMING, word)
        for code, moved in ((-1, Status.ADVANCED), (1, Status.RETREATED), (-2, Status.PROBED)):
            word = xp.where(at.moved == code, moved, word)
        return word
