"""Play a rule on a scenario: all seeds at once, as a leading axis of the rule's arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl import rules
from scout_rl.rules.cells import Cells, Outcomes
from scout_rl.rules.rule import SCHEDULES, Rule
from scout_rl.simulate.model import Floats, init_skill, lose_stage, practise, success_chance
from scout_rl.simulate.scenarios import Scenario

EVERY = 10
"""Windows between evaluations."""


class SimulatedRun(NamedTuple):
    """One rule on one scenario, over all seeds."""

    rule: str
    windows: NDArray[np.int64]
    """``[evaluations]``: windows closed at each evaluation."""
    success: Floats
    """``[seeds, evaluations, groups]``: mean level-0 success probability of each group's contexts."""
    level: NDArray[np.float32]
    """``[evaluations, contexts]``: the first seed's frontier, or the expected level for rules without a frontier."""
    unevaluated: Floats
    """``[seeds]``: share of rollouts on contexts that are not evaluated (hopeless or capped)."""


def rule_for(key: str, scenario: Scenario) -> Rule:
    """The rule for the scenario's budget: as in the paper, a schedule takes 5/6 of it."""
    schedules = set(SCHEDULES) & rules.make(key).constants().keys()
    return rules.make(key, **dict.fromkeys(schedules, 5 * scenario.windows // 6))


def play(rule: Rule, scenario: Scenario, *, seeds: int = 20, seed: int = 0) -> SimulatedRun:
    """Play the scenario's budget."""
    rng = np.random.default_rng([seed, 1])
    state = _repeat(rule.init(scenario.n_contexts, scenario.n_levels, scenario.oracle_group), seeds)
    skill = init_skill(scenario.learner, seeds)
    groups = [np.flatnonzero(scenario.evaluation_group == g) for g in range(len(scenario.group_names))]
    unevaluated = scenario.evaluation_group < 0
    windows, success, level = [], [], []
    spent = np.zeros(seeds)
    for window in range(scenario.windows + 1):
        if scenario.lose and window == scenario.lose[0]:
            skill = lose_stage(scenario.learner, skill, scenario.lose[1])
        p = rule.distribution(state)
        chances = success_chance(skill, scenario.learner.cap)
        if window % EVERY == 0:
            target = chances[..., 0]
            windows.append(window)
            success.append(np.stack([target[:, g].mean(axis=1) for g in groups], axis=-1))
            level.append(_level(rule, state, p))
        if window == scenario.windows:
            break
        cells = draw(rng, p, scenario.rollouts)
        chance = chances[np.arange(seeds)[:, None], cells.context, cells.level]
        outcome = rng.random(chance.shape) < chance
        spent += unevaluated[cells.context].sum(axis=1)
        skill = practise(scenario.learner, skill, cells, outcome)
        surprise = np.abs(outcome - chance)  # stands for the mean absolute TD error
        state = rule.update(state, Outcomes(*cells, outcome, surprise, np.ones_like(outcome)))
    share = spent / (scenario.windows * scenario.rollouts)
    return SimulatedRun(rule.key, np.array(windows), np.stack(success, axis=1), np.stack(level), share)


def draw(rng: np.random.Generator, p: Floats, n: int) -> Cells:
    """Draw ``n`` cells for every seed from ``p``, ``[seeds, contexts, levels]``."""
    seeds, _, levels = p.shape
    cumulative = np.cumsum(p.reshape(seeds, -1), axis=-1)
    cumulative /= cumulative[:, -1:]
    row = np.arange(seeds)[:, None]
    flat = np.searchsorted((cumulative + row).ravel(), (rng.random((seeds, n)) + row).ravel(), side="right")
    cell = flat.reshape(seeds, n) - row * cumulative.shape[1]
    return Cells(*np.divmod(np.clip(cell, 0, cumulative.shape[1] - 1), levels))


def annealing_sweep(
    scenario: Scenario, fractions: tuple[float, ...] = (0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0), *, seeds: int = 20
) -> list[tuple[float, SimulatedRun]]:
    """Play global annealing at several lengths (shares of the budget): does one shared pace solve every group?"""
    lengths = [(share, max(1, round(share * scenario.windows))) for share in fractions]
    return [(share, play(rules.Anneal(T_anneal=T), scenario, seeds=seeds)) for share, T in lengths]


def _level(rule: Rule, state: Any, p: Floats) -> NDArray[np.float32]:
    frontier = rule.frontier(state)
    if frontier is not None:
        return np.asarray(frontier[0], np.float32)
    weight = p[0] / np.maximum(p[0].sum(axis=-1, keepdims=True), 1e-300)
    return np.asarray(weight @ np.arange(p.shape[-1]), np.float32)


def _repeat(state: Any, n: int) -> Any:
    if state is None:
        return None
    if hasattr(state, "_asdict"):
        return type(state)(*(_repeat(value, n) for value in state))
    return np.repeat(np.asarray(state)[None], n, axis=0)
