"""The value types between a rollout and a learner: what a policy decided, and what came of it."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any
PyTree = Any


class Decision(NamedTuple):
    """What ``act`` returns: the actions of a batch, and what the update will want to know about them."""

    action: Array
    """int32[B] or float32[B, ...]."""
    memory: PyTree
    """Arrays [B, ...] that the rollout keeps for ``update``, such as log-probabilities and values."""


class Episodes(NamedTuple):
    """B episodes, one a rollout, in a buffer as long as the time limit T; time comes first.

    An episode is over after its first success; without one it fills the buffer. Entries after its end have
    ``valid = False`` and hold anything.
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


class GoalEpisodes(NamedTuple):
    """B goal-conditioned episodes of the full time limit T (they do not end at success); episodes come first."""

    observation: Array
    """float32[B, T + 1, n]: before each step, and after the last."""
    achieved: Array
    """float32[B, T + 1, k]: the goal that each of these states achieves."""
    action: Array
    """float32[B, T, m]: as taken, in [-1, 1]."""
    goal: Array
    """float32[B, k]: the desired goal."""
    radius: Array
    """float32[B]: a state within it of a goal is a success."""
    group: Array
    """int32[B]: the context's oracle group, for balanced minibatches alone."""


class GoalSpace(NamedTuple):
    """The sizes of a goal-conditioned setting that a learner needs to know."""

    observation: int
    goal: int
    action: int
    horizon: int
