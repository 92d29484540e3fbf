"""The contract of a learner: three pure functions of a pytree state, and the episodes that one window hands to it.

Pure functions of plain arrays can be compiled as one call and ``vmap``ped over runs. A learner sees episodes, never
cells: it does not know of levels, contexts or rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

Array = Any
PyTree = Any


class Decision(NamedTuple):
    """What ``act`` returns: the actions of a batch, and what the update will want to know about them."""

    action: Array
    """int32[B] or float32[B, ...]."""
    memory: PyTree
    """Arrays [B, ...] that the rollout keeps for ``update``, such as log-probabilities and values."""


class Episodes(NamedTuple):
    """B episodes, one a rollout, in a buffer of T steps; time comes first.

    An episode is over after its first success or at the time limit; its entries after that have ``valid = False``
    and hold anything.
    """

    observation: Array
    """[T, B, ...]: what the action was chosen on."""
    action: Array
    """[T, B, ...]."""
    memory: PyTree
    """[T, B, ...]: ``Decision.memory``."""
    success: Array
    """bool[T, B]: the step succeeded."""
    valid: Array
    """bool[T, B]: the step belongs to the episode."""
    final_observation: Array
    """[B, ...]: after the last step of the buffer; what a value is bootstrapped from where time ran out."""


class Update(NamedTuple):
    """What ``update`` returns."""

    state: PyTree
    signal: Array
    """float32[B]: the learner signal of each episode, for the rules that use one."""
    metrics: dict[str, Array]
    """Scalars for the records."""


class Learner(Protocol):
    """Init, act, update. Hyper-parameters live in the (hashable) learner itself, everything learned in the state."""

    def init(self, key: Array) -> PyTree:
        """Fresh parameters and optimiser state."""
        ...

    def act(self, state: PyTree, observation: Array, key: Array) -> Decision:
        """Actions for a batch of observations [B, ...]."""
        ...

    def update(self, state: PyTree, episodes: Episodes, key: Array) -> Update:
        """Learn from one window's episodes."""
        ...
