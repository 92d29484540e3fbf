"""Windows that NumPy plays, for the other kinds of arrays to play again."""

import numpy as np

from scout_rl import rules
from scout_rl.rules.cells import Outcomes
from tests.rules.streams import Stream
from tests.rules.test_contract import groups

WINDOWS, CONTEXTS, LEVELS = 1000, 20, 5
MARGIN = 1e-6


def thresholds_are_clear(rule, state):
    """Whether every number that the rule compares with a threshold is MARGIN off it.

    Rates of whole counts (aced, rfcl) are exact quotients in both precisions, so a tie there is no danger.
    """
    if isinstance(rule, rules.GroupFrontier):
        state = state.pooled
    if isinstance(rule, rules.Beta):
        a, b = 1 + state.wins, 1 + state.trials - state.wins
        high = 1 - rules.incomplete_beta.incomplete_beta(a, b, rule.tau_high)
        low = rules.incomplete_beta.incomplete_beta(a, b, rule.tau_low)
        rate = state.wins / np.maximum(state.trials, 1)
        gaps = [high - rule.certainty, low - rule.certainty, rate - rule.tau_low]
    elif isinstance(rule, rules.Wilson):
        lower, upper, rate = rules.wilson.wilson_bounds(state.wins, state.trials, rule.z)
        gaps = [lower - rule.tau_high, upper - rule.tau_low, rate - rule.tau_low]
    elif isinstance(rule, rules.Learnability):
        score = state.learnability.reshape(-1)
        last = np.sort(score)[-max(1, round(rule.share * score.size))]
        gaps = [np.abs(score - last) - rules.learnability.TIE]
    elif isinstance(rule, rules.Scout):
        gaps = [state.statistics.success - rule.tau_high, state.statistics.success - rule.tau_low]
    else:
        return True
    return min(np.abs(gap).min() for gap in gaps) > MARGIN


def trace(rule, seed):
    """Play 1,000 windows on NumPy: probabilities, frontiers and the outcomes, or None where a threshold was grazed."""
    state = rule.init(CONTEXTS, LEVELS, groups(CONTEXTS))
    stream = Stream(CONTEXTS, LEVELS, 16, seed)
    p, frontier, seen = [], [], []
    for _ in range(WINDOWS):
        p.append(rule.distribution(state))
        seen.append(stream.next(p[-1]))
        state = rule.update(state, seen[-1])
        if not thresholds_are_clear(rule, state):
            return None
        f = rule.frontier(state)
        frontier.append(np.zeros(CONTEXTS) if f is None else f)
    return np.stack(p), np.stack(frontier), Outcomes(*(np.stack(c) for c in zip(*seen, strict=True)))


def clear_trace(rule):
    """The first seed's trace in which no threshold is grazed."""
    return next(t for t in (trace(rule, seed) for seed in range(20)) if t is not None)
