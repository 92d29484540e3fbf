"""A frontier rule's status (`gathering`, `cooling`, `deadband`, …) of every context after every window.

Statuses are not stored: rules are pure functions, so they follow from the recorded outcomes. Where the rule does not
reach the recorded frontiers again, there are no statuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report.read.run import RunRecord
from scout_rl.rules import Status
from scout_rl.rules.cells import Outcomes

WORDS = tuple(status.word for status in sorted(Status))
MEANING = {
    "gathering": "too few rollouts at this level yet",
    "cooling": "it moved a moment ago",
    "deadband": "success is neither high nor low",
    "target": "at the target start, and not failing",
    "easiest": "failing, and there is no easier start",
    "confirming": "a direction was found and must be found again",
    "advanced": "success was high",
    "retreated": "success was low",
    "probed": "stalled, so a harder level is tried",
    "learning": "some level is neither too hard nor mastered",
    "mastered": "the target start succeeds nearly always",
    "too hard at the easiest level": "even the easiest level hardly ever succeeds",
    "seldom drawn": "its last outcome is long ago: what is known of it is what the bank shows",
}
"""Each of ``WORDS`` in a few words."""


def window_statuses(run: RunRecord) -> NDArray[np.int8] | None:
    """``[windows, contexts]``: index into ``WORDS`` after each window.

    None where the rule has no frontier, needs what is not recorded, or does not reach the recorded frontiers.
    """
    rule = recorded_rule(run)
    if rule is None or run.frontier is None:
        return None
    if run.about.rule == "group-frontier" and run.oracle_group is None:
        return None
    statuses = np.zeros(run.frontier.shape, np.int8)
    for w, (_, state) in enumerate(replayed(run, rule)):
        status = rule.status(state)
        if status is None or not np.array_equal(rule.frontier(state), run.frontier[w]):
            return None
        statuses[w] = status
    return statuses


def replayed(run: RunRecord, rule: Any) -> Iterator[tuple[slice, Any]]:
    """Of every window: which rollouts are its own, and the state of the rule after it."""
    state = rule.init(run.about.n_contexts, run.about.n_levels, run.oracle_group)
    context, level = run.rollouts.context.astype(np.int64), run.rollouts.level.astype(np.int64)
    edges = np.searchsorted(run.rollouts.window, np.arange(run.about.windows + 1))
    for start, end in pairwise(edges.tolist()):
        own, n = slice(start, end), end - start
        outcomes = Outcomes(context[own], level[own], run.rollouts.success[own], np.zeros(n), np.ones(n, bool))
        state = rule.update(state, outcomes)
        yield own, state


def recorded_rule(run: RunRecord) -> Any:
    """The rule with its recorded constants; None if this version does not know it or it reads a signal."""
    try:
        rule = rules.make(run.about.rule, **run.about.config.get("constants", {}))
    except (ValueError, TypeError):
        return None
    return None if rule.needs_signal else rule
