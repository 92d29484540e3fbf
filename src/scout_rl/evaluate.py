"""Held-out evaluation: contexts that were never trained on, from the target start. There is no level argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bank import BankPart
from scout_rl.families.family import PureFamily
from scout_rl.learners.learner import Learner
from scout_rl.rollout import succeeds
from scout_rl.settings import Setting

EVALUATION_KEY = 7
"""Of the sampled policy, the same at every evaluation of every run, so that curves differ by what was learned."""


class Evaluation(NamedTuple):
    """The outcome of every held-out context, once each, and its mean by group."""

    outcomes: NDArray[np.bool_]
    groups: dict[str, float]

    @property
    def success(self) -> float:
        """Over all contexts."""
        return float(self.outcomes.mean())

    @property
    def worst(self) -> float:
        """Over the groups."""
        return min(self.groups.values())


def evaluator(family: PureFamily, setting: Setting, part: BankPart, learner: Learner) -> Callable[[Any], Evaluation]:
    """Compile the evaluation of this setting; the result takes a learner's state."""
    simulator = family.simulator(setting)
    starts = family.batch_simulator(setting).reset_to(family.target_starts(part.contexts))

    def outcomes(state: Any) -> Any:
        return succeeds(
            simulator, lambda seen, key: learner.act(state, seen, key), starts, jax.random.key(EVALUATION_KEY)
        )

    compiled = jax.jit(outcomes)

    def evaluate(state: Any) -> Evaluation:
        return by_group(setting, part, np.asarray(compiled(state)))

    return evaluate


def by_group(setting: Setting, part: BankPart, outcomes: NDArray[np.bool_]) -> Evaluation:
    """Split outcomes by the evaluation groups, in the setting's order."""
    means = [float(outcomes[part.evaluation_group == g].mean()) for g in range(len(setting.groups))]
    return Evaluation(outcomes, dict(zip((group.name for group in setting.groups), means, strict=True)))
