"""Held-out evaluation: contexts that were never trained on, always from the target start."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, GoalSimulator
from scout_rl.bench.learners.learner import GoalLearner, Learner, StepLearner
from scout_rl.bench.rollouts import host
from scout_rl.bench.rollouts.device import rollout
from scout_rl.bench.settings.bank import BankPart
from scout_rl.bench.settings.settings import Setting

EVALUATION_KEY = 7
"""Random key of sampled policies, the same at every evaluation of every run."""


class Evaluation(NamedTuple):
    """The outcome of every held-out context, and the mean by group."""

    outcomes: NDArray[np.bool_]
    groups: dict[str, float]

    @property
    def success(self) -> float:
        """The mean over all contexts."""
        return float(self.outcomes.mean())

    @property
    def worst(self) -> float:
        """The lowest mean of a group."""
        return min(self.groups.values())


def evaluator(family: Family, setting: Setting, part: BankPart, learner: Learner) -> Callable[[Any], Evaluation]:
    """A compiled evaluation of this setting; it takes a learner's state."""
    if learner.plays == "steps":
        outcomes = jax.jit(_on_device(family, setting, part, learner))
    else:
        outcomes = _on_host(family, setting, part, learner)
    return lambda state: by_group(setting, part, np.asarray(outcomes(state)))


def batch_evaluator(
    family: Family, setting: Setting, part: BankPart, learner: StepLearner
) -> Callable[[Any], list[Evaluation]]:
    """As `evaluator`, for the states [runs, ...] of several runs: one compiled call."""
    compiled = jax.jit(jax.vmap(_on_device(family, setting, part, learner)))
    return lambda states: [by_group(setting, part, outcomes) for outcomes in np.asarray(compiled(states))]


def _on_device(family: Family, setting: Setting, part: BankPart, learner: StepLearner) -> Callable[[Any], Any]:
    """A sampled policy in a simulator of pure functions: learner state -> outcomes."""
    simulator = family.simulator(setting)
    starts = family.batch_simulator(setting).reset_to(family.target_starts(part.contexts))

    def outcomes(state: Any) -> Any:
        act = functools.partial(learner.act, learner.policy(state))
        return rollout(simulator, act, starts, jax.random.key(EVALUATION_KEY)).success.any(axis=0)

    return outcomes


def _on_host(
    family: Family, setting: Setting, part: BankPart, learner: GoalLearner
) -> Callable[[Any], NDArray[np.bool_]]:
    """The deterministic policy in a simulator on the host, all contexts as one batch."""
    simulator = cast(GoalSimulator, family.batch_simulator(setting))
    starts = family.target_starts(part.contexts)
    decide, begin = jax.jit(lambda policy, rows: learner.decide(policy, rows, None)), jax.jit(learner.policy)

    def outcomes(state: Any) -> NDArray[np.bool_]:
        policy = begin(state)
        return host.succeeds(simulator, lambda t, rows: np.asarray(decide(policy, rows)), starts)

    return outcomes


def by_group(setting: Setting, part: BankPart, outcomes: NDArray[np.bool_]) -> Evaluation:
    """The outcomes with their means by evaluation group, in the setting's order."""
    means = [float(outcomes[part.evaluation_group == g].mean()) for g in range(len(setting.groups))]
    return Evaluation(outcomes, dict(zip((group.name for group in setting.groups), means, strict=True)))
