"""A frontier rule played again over its recorded outcomes: what it said of every context in every window.

Rules are pure functions of their outcomes, so the words (`gathering`, `cooling`, `deadband`, …) need
not be stored. A replay whose frontiers differ from the recorded ones is refused: it would explain another run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.report.read.run import Run
from scout_rl.rules import Status
from scout_rl.rules.cells import Outcomes

WORDS = tuple(status.name.lower() for status in sorted(Status))


def replay(run: Run) -> NDArray[np.int8] | None:
    """``[windows, contexts]``: index into ``WORDS`` after each window.

    None where the rule has no frontier, needs what is not recorded, or ends up elsewhere.
    """
    rule = _rule(run)
    if rule is None or run.frontier is None:
        return None
    if run.about.rule == "group-frontier" and run.oracle_group is None:
        return None
    state = rule.init(run.about.n_contexts, run.about.n_levels, run.oracle_group)
    status = np.zeros(run.frontier.shape, np.int8)
    edges = np.searchsorted(run.played.window, np.arange(len(run.frontier) + 1))
    for w, (start, end) in enumerate(pairwise(edges)):
        state = rule.update(state, _outcomes(run, int(start), int(end)))
        word = rule.status(state)
        if word is None or not np.array_equal(rule.frontier(state), run.frontier[w]):
            return None
        status[w] = word
    return status


def _rule(run: Run) -> Any:
    """The rule with its recorded constants; None for one that this version does not know or that reads a signal."""
    try:
        rule = rules.make(run.about.rule, **run.about.config.get("constants", {}))
    except (ValueError, TypeError):
        return None
    return None if rule.needs_signal else rule


def _outcomes(run: Run, start: int, end: int) -> Outcomes:
    part = slice(start, end)
    played = run.played
    size = end - start
    return Outcomes(
        played.context[part].astype(np.int64),
        played.level[part].astype(np.int64),
        played.success[part],
        np.zeros(size),
        np.ones(size, bool),
    )
