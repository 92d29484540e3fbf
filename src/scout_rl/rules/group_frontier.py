"""Group frontier: SCOUT on statistics pooled by oracle group (appendix, baseline table, row 8)."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import State, check_shape, require
from scout_rl.rules.sampling import floor_and_cap, softmax
from scout_rl.rules.scout import Scout, ScoutState


class GroupState(NamedTuple):
    """SCOUT's state with one row per group, and each context's row, ``[..., contexts]``."""

    pooled: ScoutState
    group: Array

    @property
    def statistics(self) -> Any:
        """The pooled statistics, one row per group."""
        return self.pooled.statistics


@dataclass(frozen=True, kw_only=True)
class GroupFrontier(Scout):
    """One frontier per oracle group; a context is scored with its group's statistics.

    The floor and the cap are over contexts. The whole group's outcomes count for the evidence gate, so it opens about
    group-size times sooner than SCOUT's.
    """

    key: ClassVar[str] = "group-frontier"

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """One row per distinct label, sorted."""
        check_shape(n_contexts, n_levels)
        require(oracle_group is not None, "group-frontier needs oracle_group: one label per context")
        labels = np.asarray(oracle_group)
        require(
            labels.shape == (n_contexts,),
            f"oracle_group has shape {labels.shape}, but must be ({n_contexts},): one label per context",
        )
        names, group = np.unique(labels, return_inverse=True)
        return GroupState(super().init(len(names), n_levels), group.astype(np.int32))

    def context_probabilities(self, state: State) -> Array:
        """Eq. 1 with the group's numbers, softmax, floor and cap over contexts."""
        score = _of_group(self.score(state.pooled), state.group)
        return floor_and_cap(softmax(score, self.tau), self.eps, self.q_max)

    def update(self, state: State, outcomes: Outcomes) -> State:
        """SCOUT's window; every outcome counts for its context's group."""
        of_groups = outcomes._replace(context=_of_group(state.group, outcomes.context))
        return state._replace(pooled=super().update(state.pooled, of_groups))

    def frontier(self, state: State) -> Array:
        """The frontier of each context's group."""
        return _of_group(state.pooled.frontier.level, state.group)

    def status(self, state: State) -> Array:
        """The status of each context's group."""
        return _of_group(super().status(state.pooled), state.group)

    def moved(self, state: State) -> Array:
        """The last move of each context's group."""
        return _of_group(state.pooled.frontier.moved, state.group)

    def basis(self, state: State, context: Array, level: Array) -> tuple[Array, Array]:
        """The pooled statistics."""
        return super().basis(state, state.group[context], level)


def _of_group(rows: Array, index: Array) -> Array:
    """``rows[..., index]``, leading axes kept."""
    return namespace(rows).take_along_axis(rows, index, axis=-1)
