"""Which contexts are stuck, and why. Every reason comes with its counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report.measure.metrics import RETREAT
from scout_rl.report.read.run import RunRecord

RECENT = 10
LOW = 0.2
"""Success among the last ten rollouts up to which a level is failed."""
TURNS = 3
"""Changes of direction in the last half of a run from which a context oscillates."""


class Stuck(NamedTuple):
    """One context and its reason."""

    context: int
    reason: str
    """One of ``REASONS``."""
    evidence: str
    """The numbers behind it."""


REASONS = {
    "no rollouts": "never drawn: the rule gives it no probability, or the run was too short",
    "evidence missing": "too few rollouts to decide: fewer contexts, larger windows, a smaller gate or a longer run",
    "fails at the easiest": "hardly succeeds at level L and there is no easier start: look at this context's ladder",
    "never succeeds": "not once from the harder level that it tries and tries: it needs longer, or a level in between",
    "oscillates": "advances and retreats again and again: success at the harder level does not last",
    "lost the target": "reached the target start and fell back: what was learned there was forgotten",
    "fails at the target": "trains from the target start and hardly succeeds there",
    "undecided": "success at its level is neither high nor low, and no probe helped",
}


class Cells(NamedTuple):
    """Per cell ``[contexts, levels]``: rollouts, successes, and success among the last ten."""

    tried: NDArray[np.int64]
    won: NDArray[np.int64]
    recent: NDArray[np.float64]
    """NaN without a rollout."""


def cells(run: RunRecord) -> Cells:
    """Count the rollouts of every cell."""
    shape = run.about.n_contexts, run.about.n_levels
    cell = run.rollouts.context.astype(np.int64) * shape[1] + run.rollouts.level
    order = np.argsort(cell, kind="stable")
    tried = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.concatenate(([0], np.cumsum(run.rollouts.success[order])))
    end = np.cumsum(tried)
    last = np.minimum(tried, RECENT)
    recent = np.divide(total[end] - total[end - last], last, out=np.full(len(tried), np.nan), where=last > 0)
    won = total[end] - total[end - tried]
    return Cells(tried.reshape(shape), won.reshape(shape), recent.reshape(shape))


def find_stuck(run: RunRecord) -> list[Stuck]:
    """Every context that makes no progress, with its reason."""
    counted = cells(run)
    drawn = counted.tried.any(axis=1)
    contexts = np.flatnonzero(drawn).tolist()
    if run.frontier is None:
        verdicts = [_without_frontier(x, counted) for x in contexts]
    elif has_model(run.about.rule):
        failing = ((counted.tried >= RECENT) & ~(counted.recent > LOW)).any(axis=1)  # no other context can be stuck
        verdicts = [_with_model(run, x, counted) for x in np.flatnonzero(failing).tolist()]
    else:
        order = np.argsort(run.moves.context, kind="stable")
        edges = np.searchsorted(run.moves.context[order], np.arange(run.about.n_contexts + 1))
        needed = gate(run)
        verdicts = [_with_frontier(run, x, counted, order[edges[x] : edges[x + 1]], needed) for x in contexts]
    verdicts += [Stuck(x, "no rollouts", "0 rollouts") for x in np.flatnonzero(~drawn).tolist()]
    return sorted(stuck for stuck in verdicts if stuck is not None)


def _without_frontier(x: int, counted: Cells) -> Stuck | None:
    if counted.tried[x, 0] >= RECENT and counted.recent[x, 0] <= LOW:
        return Stuck(x, "fails at the target", _by_level(x, counted))
    return None


def _by_level(x: int, counted: Cells) -> str:
    tried, won = counted.tried[x], counted.won[x]
    return "; ".join(f"level {i}: {won[i]} of {tried[i]}" for i in range(len(tried)) if tried[i])


def _with_frontier(run: RunRecord, x: int, counted: Cells, moves: NDArray[np.int64], needed: int) -> Stuck | None:
    """``moves`` are the context's own, in order; a move needs ``needed`` rollouts."""
    assert run.frontier is not None
    levels, windows = run.about.n_levels, len(run.frontier)
    tried, won, recent = counted.tried[x], counted.won[x], counted.recent[x]
    level = int(run.frontier[-1, x])
    window, easier = run.moves.window[moves], run.moves.kind[moves] == RETREAT
    rate = f"{won[level]} of {tried[level]} rollouts at level {level}"
    if level == 0 and not recent[0] <= LOW:
        return None  # at the target start and succeeding, or just arrived
    late = window >= windows // 2
    turns = int((easier[late][1:] != easier[late][:-1]).sum())
    hard, easy = int(run.frontier[windows // 2 :, x].min()), int(run.frontier[windows // 2 :, x].max())
    pair = f"{won[easy]} of {tried[easy]} rollouts at level {easy}, {won[hard]} of {tried[hard]} at level {hard}"
    if hard < easy and tried[hard] >= needed and won[hard] == 0 and easier.any():
        return Stuck(x, "never succeeds", pair)
    if turns >= TURNS:
        return Stuck(x, "oscillates", f"{turns} turns in the last half; {pair}")
    if level == 0:
        return Stuck(x, "fails at the target", f"{rate}, {recent[0]:.0%} lately") if tried[0] >= RECENT else None
    if (run.frontier[:, x] == 0).any():
        return Stuck(x, "lost the target", _reached_and_left(run, x))
    since = windows - (int(window[-1]) + 1 if len(window) else 0)
    if since < max(1, windows // 4):
        return None  # it moved in the last quarter: not stuck
    if tried[level] < needed:
        return Stuck(x, "evidence missing", f"{tried[level]} of {needed} rollouts at level {level} in {since} windows")
    if level == levels - 1 and recent[level] <= LOW:
        return Stuck(x, "fails at the easiest", rate)
    return Stuck(x, "undecided", f"{rate}, {recent[level]:.0%} of the last ten, no move for {since} windows")


def _reached_and_left(run: RunRecord, x: int) -> str:
    assert run.frontier is not None
    first = run.about.first + int(np.argmax(run.frontier[:, x] == 0)) + 1
    return f"at level 0 in window {first}, at level {run.frontier[-1, x]} in the end"


def _with_model(run: RunRecord, x: int, counted: Cells) -> Stuck | None:
    """For a frontier that is read off a model: it need not be where the context trains, and may swing at its limit."""
    assert run.frontier is not None
    tried, won, recent = counted.tried[x], counted.won[x], counted.recent[x]
    level, easiest = int(run.frontier[-1, x]), run.about.n_levels - 1
    by_level = _by_level(x, counted)
    failing = (tried >= RECENT) & ~(recent > LOW)
    if failing[easiest] and not (recent > LOW).any():
        return Stuck(x, "fails at the easiest", by_level)
    if failing[0] and (run.frontier[:, x] == 0).sum() >= RECENT:  # for a while, not for a moment
        if level == 0:
            return Stuck(x, "fails at the target", by_level)
        return Stuck(x, "lost the target", f"{_reached_and_left(run, x)}; {by_level}")
    if level > 0 and failing[level - 1] and won[level - 1] == 0:
        return Stuck(x, "never succeeds", by_level)
    return None


def has_model(rule: str) -> bool:
    """Whether the rule reads its frontier off a model of success: it needs no number of outcomes for a move."""
    return rule in rules.RULES and not rules.RULES[rule].gate_constant


def gate(run: RunRecord) -> int:
    """Rollouts that the rule needs before it moves a frontier."""
    try:
        return int(rules.make(run.about.rule, **run.about.config.get("constants", {})).evidence_gate or 1)
    except (ValueError, TypeError):
        return 1  # a rule of another version


def gate_constant(rule: str) -> str:
    """Name of the constant behind `gate`; empty for a rule without one, or an unknown rule."""
    return rules.RULES[rule].gate_constant if rule in rules.RULES else ""
