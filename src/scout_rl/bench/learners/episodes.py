"""The values that pass from rollouts to learners: decisions and episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any
PyTree = Any


class Decision(NamedTuple):
    """What ``act`` returns: the actions of a batch, and what the update needs to know about them."""

    action: Array
    """int32[B] or float32[B, ...]."""
    memory: PyTree
    """Arrays [B, ...] that the rollout keeps for ``update``, such as log-probabilities and values."""


class Episodes(NamedTuple):
    """B episodes, one per rollout, in a buffer as long as the time limit T; time is the first axis.

    An episode ends with its first success; without one it fills the buffer. Entries after its end have
    ``valid = False`` and arbitrary values.
    """

    observation: Array
    """[T, B, ...]: before each action."""
    action: Array
    """[T, B, ...]."""
    memory: PyTree
    """[T, B, ...]: ``Decision.memory``."""
    success: Array
    """bool[T, B]: the step succeeded."""
    valid: Array
    """bool[T, B]: the step belongs to the episode."""
    final_observation: Array
    """[B, ...]: after the last step of the buffer, to bootstrap a value at the time limit."""


class GoalEpisodes(NamedTuple):
    """B goal-conditioned episodes of T steps, the time limit (success does not end them); B is the first axis."""

    observation: Array
    """float32[B, T + 1, n]: before each step, and after the last."""
    achieved: Array
    """float32[B, T + 1, k]: the goal that each of these states achieves."""
    action: Array
    """float32[B, T, m]: as taken, in [-1, 1]."""
    goal: Array
    """float32[B, k]: the desired goal."""
    radius: Array
    """float32[B]: a state within this distance of a goal is a success."""
    group: Array
    """int32[B]: the context's oracle group, only for balanced minibatches."""


class GoalSpace(NamedTuple):
    """The sizes of a goal-conditioned setting that a learner needs."""

    observation: int
    goal: int
    action: int
    horizon: int
