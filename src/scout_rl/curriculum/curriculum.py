"""`Curriculum` owns the rule's state, the random generator, the window counter and the records."""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scout_rl.curriculum import checks as outcome_checks
from scout_rl.curriculum import snapshot
from scout_rl.records.tables import RecordWriter
from scout_rl.rules.cells import Cells, Chance, Event, Outcomes
from scout_rl.rules.rule import Rule, Status, require

log = logging.getLogger("scout_rl")

MOVES = {-1: "advance", 1: "retreat", -2: "antistall"}
LONG_WAIT = 500
"""More windows than this before the first possible move give a warning."""
EVENTS_KEPT = 100_000
STREAM = 0x5C0B7
"""Makes the cells' random numbers differ from those of ``default_rng(seed)``, which environments and users draw."""


class Curriculum:
    """Assigns cells, takes their outcomes, moves frontiers.

    Examples:
        >>> from scout_rl import Curriculum, rules
        >>> curriculum = Curriculum(rules.Ability(), n_contexts=100, n_levels=5, seed=0)
        >>> cells = curriculum.assign(16)
        >>> events = curriculum.report(cells, success=[True] * 16)

    The same seed and the same reports give the same assignments. Their random numbers are not those of
    ``np.random.default_rng(seed)``, so they are independent of an environment with the same seed. ``window`` outcomes
    of `record` close a window; a call of `report` always closes one. ``name`` is what ``scout report`` calls the run's
    condition: runs of one name differ only in their seed.
    """

    def __init__(
        self,
        rule: Rule,
        n_contexts: int,
        n_levels: int,
        *,
        seed: int = 0,
        window: int = 16,
        oracle_group: ArrayLike | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> None:
        require(isinstance(rule, Rule), f"rule is {rule!r}, but must be a rule such as rules.Scout()")
        n_contexts = outcome_checks.whole_number(n_contexts, "n_contexts")
        n_levels = outcome_checks.whole_number(n_levels, "n_levels")
        self.window = outcome_checks.whole_number(window, "window")
        require(self.window >= 1, f"window is {window}, but a window has at least one outcome")
        self.seed = outcome_checks.whole_number(seed, "seed")
        require(self.seed >= 0, f"seed is {seed}, but cannot be negative")
        self.rule, self.n_contexts, self.n_levels = rule, n_contexts, n_levels
        self.state = rule.init(n_contexts, n_levels, oracle_group)
        require(name is None or (isinstance(name, str) and bool(name)), f"name is {name!r}, but must be a text")
        self.name = name
        self.windows = 0
        """Windows closed so far."""
        self.evaluated: int | None = None
        """Windows closed at the last `evaluation`."""
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        """The moves in this process, the newest last."""
        self.process = os.getpid()
        """The process that made it: a copy in another process would miss the outcomes reported here."""
        self.generator = np.random.Generator(np.random.PCG64([self.seed, STREAM]))
        """Draws the cells; part of the state dict."""
        self.digest = ""
        """A hash of all outcomes so far, in order. It tells whether records and a checkpoint belong together."""
        self._cumulative: tuple[NDArray[np.float64], int] | None = None
        self._unchecked = True
        self._waiting: list[outcome_checks.Outcome] = []
        self._config = snapshot.config(self)
        self._records = None if log_dir is None else RecordWriter(log_dir, self._config)
        self._say_what_to_expect()

    # -- the loop --------------------------------------------------------------------------------------------------

    def assign(self, n: int) -> Cells:
        """Draw ``n`` cells from the current distribution."""
        n = outcome_checks.whole_number(n, "n")
        require(n >= 0, f"assign was asked for {n} cells")
        cumulative, last = self._checked()
        index = cumulative.searchsorted(self.generator.random(n) * cumulative[-1], side="right")
        index = np.minimum(index, last)
        if len(cumulative) == self.n_contexts:  # a frontier rule: one active cell per context
            return Cells(index, self.rule.frontier(self.state)[index].astype(np.int64))  # type: ignore[index]
        return Cells(*divmod(index, self.n_levels))

    def assign_one(self) -> tuple[int, int]:
        """Draw one cell, (context, level), like ``assign(1)`` in a third of the time."""
        cumulative, last = self._checked()
        index = min(int(cumulative.searchsorted(self.generator.random() * cumulative[-1], side="right")), last)
        if len(cumulative) == self.n_contexts:
            return index, int(self.rule.frontier(self.state)[index])  # type: ignore[index]
        return divmod(index, self.n_levels)

    def report(self, cells: Cells, success: ArrayLike, signal: ArrayLike | None = None) -> list[Event]:
        """Close a window with these outcomes; return the moves. The cells need not be the assigned ones."""
        checked = outcome_checks.check(self, cells, success, signal)
        if self._waiting:
            pairs = zip(outcome_checks.gathered(self._waiting), checked, strict=True)
            checked = Outcomes(*(np.concatenate(pair) for pair in pairs))
        return self._close(checked)

    def record(self, context: int, level: int, success: Any, signal: float | None = None) -> list[Event]:
        """Take one outcome; every ``window``-th closes a window and returns the moves."""
        outcome = outcome_checks.check_one(self, context, level, success, signal)
        if len(self._waiting) + 1 < self.window:
            self._waiting.append(outcome)
            return []
        return self._close(outcome_checks.gathered([*self._waiting, outcome]))

    def evaluation(self, outcomes: ArrayLike, group: Sequence[object] | None = None) -> dict[str, float]:
        """Take the outcome, 0 or 1, of every held-out context from the target start; return success by group.

        ``group`` names the group of each context; the default is one group, ``all``. Play the same contexts in the same
        order every time, at most once per window. The row goes into ``evaluations.jsonl`` in ``log_dir``. From these
        rows ``scout report`` compares runs.
        """
        row = outcome_checks.evaluation(self.windows, outcomes, group)
        require(self.evaluated != self.windows, f"there is an evaluation after {self.windows} windows already")
        if self._records is not None:
            snapshot.check_records(self._records, self.windows)
            self._records.evaluate(row)
        self.evaluated = self.windows
        return dict(row["groups"])

    # -- views -----------------------------------------------------------------------------------------------------

    def distribution(self) -> NDArray[np.float64]:
        """Return the probability of every cell, ``[contexts, levels]``."""
        return np.array(self.rule.distribution(self.state))

    @property
    def frontier(self) -> NDArray[np.int64] | None:
        """The level of every context, ``[contexts]``; None for rules without a frontier."""
        level = self.rule.frontier(self.state)
        return None if level is None else level.astype(np.int64)

    @property
    def reasons(self) -> list[str] | None:
        """A word or phrase per context: its move in the last window, or why it did not move (docs/concepts.md)."""
        status = self.rule.status(self.state)
        return None if status is None else [Status(s).word for s in status.tolist()]

    @property
    def chance(self) -> Chance | None:
        """The rule's estimated success of every cell, and how sure it is; None for rules without a model."""
        estimate = self.rule.chance(self.state)
        return None if estimate is None else Chance(*(np.array(part, np.float64) for part in estimate))

    @property
    def windows_before_a_move(self) -> int | None:
        """About how many windows pass before a frontier can move: rows * evidence gate / window."""
        gate = self.rule.evidence_gate
        rows = self.state.statistics.success.shape[0]
        return None if gate is None else math.ceil(rows * gate / self.window)

    def __repr__(self) -> str:
        frontier = "" if self.frontier is None else f", mean frontier {self.frontier.mean():.2f}"
        size = f"{self.n_contexts} contexts x {self.n_levels} levels"
        return f"<Curriculum {self.rule.key}: {size}, window {self.windows}{frontier}>"

    # -- saving ----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a continuation needs, as plain arrays and JSON values."""
        return snapshot.take(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue exactly from a ``state_dict``; another rule, shape or version is refused."""
        snapshot.restore(self, state_dict)

    def sync(self) -> None:
        """Flush all records to the disk. Call it before you write a checkpoint; `save` does it itself."""
        if self._records is not None:
            self._records.sync()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ``state_dict`` to one npz file, atomically and without pickle."""
        self.sync()
        snapshot.save(self.state_dict(), path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a file that `save` wrote."""
        self.load_state_dict(snapshot.load(path))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _checked(self) -> tuple[NDArray[np.float64], int]:
        """As `_cumulated`; the first draw of a window refuses lost records: before it is played, not after."""
        if self._records is not None and self._unchecked:
            snapshot.check_records(self._records, self.windows)
        self._unchecked = False
        return self._cumulated()

    def _cumulated(self) -> tuple[NDArray[np.float64], int]:
        """Return the running sum of the distribution, and the last entry with any probability."""
        if self._cumulative is None:
            p = self.rule.context_probabilities(self.state)
            if p is None:
                p = self.rule.distribution(self.state).reshape(-1)
            total = p.cumsum()
            self._cumulative = total, int(total.searchsorted(total[-1], side="left"))
        return self._cumulative

    def _close(self, outcomes: Outcomes) -> list[Event]:
        """Close one window: update the rule's state, write the records, return the moves."""
        state = self.rule.update(self.state, outcomes)
        events = self._moves(self.state, state)
        if self._records is not None:
            snapshot.check_records(self._records, self.windows)
            row = outcome_checks.row(self.windows, outcomes)
            self._records.append(self.windows, row, events, self.rule.frontier(state))
        self.state = state
        self.digest = snapshot.digest(self.digest, outcomes.context, outcomes.level, outcomes.success)
        self._waiting = []
        self._cumulative, self._unchecked = None, True
        self.windows += 1
        self.events.extend(events)
        return events

    def _moves(self, before: Any, after: Any) -> list[Event]:
        """Return one event per context whose frontier moved."""
        move = self.rule.moved(after)
        if move is None or not move.any():
            return []
        (moved,) = np.nonzero(move)
        old, new = self.rule.frontier(before)[moved], self.rule.frontier(after)[moved]  # type: ignore[index]
        average, evidence = self.rule.basis(after, moved, old)
        columns = (moved, move[moved], old, new, average, evidence)
        return [
            Event(self.windows, x, MOVES[m], a, b, p, n)
            for x, m, a, b, p, n in zip(*(c.tolist() for c in columns), strict=True)
        ]

    def _say_what_to_expect(self) -> None:
        wait = self.windows_before_a_move
        if wait is None:
            return
        gate = self.rule.evidence_gate
        sentence = (
            f"{self.rule.key}: nothing can move before about window {wait} "
            f"({self.n_contexts} contexts, {gate} outcomes each, {self.window} a window)"
        )
        log.info(sentence)
        if wait > LONG_WAIT:
            gate_name = self.rule.gate_constant or "evidence gate"
            advice = f"use fewer contexts, larger windows (window=) or a smaller {gate_name}"
            warnings.warn(f"{sentence}; {advice}", UserWarning, stacklevel=3)
