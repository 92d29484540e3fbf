"""The contract of a learner: three pure functions of a pytree state.

Pure functions of plain arrays can be compiled as one call and ``vmap``ped over runs. A learner sees episodes,
never cells: it does not know of levels, contexts or rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from scout_rl.bench.learners.episodes import Decision, Episodes

Array = Any
PyTree = Any


class Update(NamedTuple):
    """What ``update`` returns."""

    state: PyTree
    signal: Array
    """float32[B]: the learner signal of each episode, for the rules that use one."""
    metrics: dict[str, Array]
    """Scalars for the records."""


class Learner(Protocol):
    """Init, act, update. Hyper-parameters live in the (hashable) learner, what is learned in the state."""

    def init(self, key: Array) -> PyTree:
        """Fresh parameters and optimiser state."""
        ...

    def act(self, state: PyTree, observation: Array, key: Array) -> Decision:
        """Actions for a batch of observations [B, ...]."""
        ...

    def update(self, state: PyTree, episodes: Episodes, key: Array) -> Update:
        """Learn from one window's episodes."""
        ...
