"""Posterior sampling: train on cells whose sampled success is nearest a target.

Qu et al. 2025, "Can Prompt Difficulty be Online Predicted for Accelerating RL Finetuning of Reasoning Models?" (MoPPS,
arXiv 2507.04632), and its public code. BOTS (Shen et al. 2025, arXiv 2510.26374) has the same posterior.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import cast, namespace, scatter_set, take
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.incomplete_beta import incomplete_beta
from scout_rl.rules.rule import Rule, check_shape, limited, require
from scout_rl.rules.statistics import Statistics, fold, init_statistics, observe, tally
from scout_rl.rules.unpaced import BETA

LEAST = 1e-6
"""Least weight of a cell: the sum is never 0, even where every cell is surely solved or surely not."""


class ThompsonState(NamedTuple):
    """Statistics, and per cell the discounted counts and the posterior's mass, ``[..., contexts, levels]``."""

    statistics: Statistics
    wins: Array
    losses: Array
    mass: Array
    """Near the target. Stored, because only cells with new outcomes can change theirs."""


@dataclass(frozen=True, kw_only=True)
class Thompson(Rule):
    """A cell's probability is proportional to P(a draw of its posterior is within ``width`` of ``target``).

    The posterior is Beta(1, 1) and discounted counts, as in the source: it forgets towards the prior, and only where
    there are outcomes. The source draws once per candidate and takes the nearest B. Ours: a rule has no generator, so
    the draws are integrated out, exactly. The distance of the last one taken is fixed; in the source it depends on all
    draws. All cells are candidates, and B is not needed. The discount is per outcome, not per batch.
    """

    key: ClassVar[str] = "thompson"

    target: float = limited(0.5, lambda target: 0 < target < 1, "target is {}, but must be between 0 and 1")
    """Success that teaches most."""
    width: float = limited(0.0625, lambda width: width > 0, "width is {}, but must be positive")
    """Largest distance to the target. The nearest eighth of the draws, as in the source, while all are uniform."""
    discount: float = limited(0.917, lambda discount: 0 < discount <= 1, "discount is {}, but must be in (0, 1]")
    """Discount of the counts per outcome. The source: 0.5 per 8 rollouts of a prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.width < min(self.target, 1 - self.target),
            f"Thompson: target={self.target} and width={self.width} reach beyond 0..1",
        )

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> ThompsonState:
        """The uniform prior in every cell."""
        check_shape(n_contexts, n_levels)
        shape = (n_contexts, n_levels)
        statistics = init_statistics(n_contexts, n_levels)
        return ThompsonState(statistics, np.zeros(shape), np.zeros(shape), np.full(shape, 2 * self.width))

    def distribution(self, state: ThompsonState) -> Array:
        """Over all cells."""
        weight = namespace(state.mass).maximum(state.mass, LEAST)
        return weight / weight.sum(axis=(-2, -1), keepdims=True)

    def update(self, state: ThompsonState, outcomes: Outcomes) -> ThompsonState:
        """Count the outcomes, and weigh the posteriors of their cells again."""
        t = tally(outcomes, state.wins.shape)
        wins = fold(state.wins, t, outcomes.success, self.discount)
        losses = fold(state.losses, t, 1 - cast(outcomes.success, state.losses.dtype), self.discount)
        a, b = 1 + take(wins, t.cell), 1 + take(losses, t.cell)
        mass = incomplete_beta(a, b, self.target + self.width) - incomplete_beta(a, b, self.target - self.width)
        weighed = scatter_set(state.mass.reshape(-1), t.cell, mass)
        statistics = observe(state.statistics, t, outcomes.success, BETA)
        return ThompsonState(statistics, wins, losses, weighed.reshape(wins.shape))
