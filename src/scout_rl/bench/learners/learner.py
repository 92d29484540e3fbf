"""The contract of a learner: pure functions of a pytree state.

Pure functions of plain arrays can be compiled as one call and ``vmap``ped over runs. A learner sees episodes, never
cells: it knows nothing of levels, contexts or rules.

There are two kinds of episodes, and ``plays`` names the kind that a learner learns from. ``steps``: `Episodes` of
unequal length from a simulator of pure functions, with the memory of each action (`StepLearner.act`). ``goals``:
`GoalEpisodes` of equal length from a simulator on the host (off_policy.py).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from scout_rl.bench.learners.episodes import Array, Decision, Episodes, GoalEpisodes, GoalSpace, PyTree


class State(NamedTuple):
    """What a learner carries from window to window."""

    learned: PyTree
    """Parameters, moments and counters, which a checkpoint saves whole."""
    replay: Any = None
    """The `Replay`, which a checkpoint saves in segments; None if the learner has none."""


class Update(NamedTuple):
    """What ``update`` returns."""

    state: State
    signal: Array
    """float32[B]: the learner signal of each episode, for the rules that use one."""
    metrics: dict[str, Array]
    """Scalars for the records."""


class _Learner(Protocol):
    """The learner is hashable and holds the hyper-parameters; the state holds what is learned."""

    def init(self, key: Array, space: GoalSpace | None, n_episodes: int) -> State:
        """Fresh parameters; ``space`` is for learners of goals, ``n_episodes`` the rollouts per window."""

    def policy(self, state: State) -> PyTree:
        """What acting needs of the state."""

    def decide(self, policy: PyTree, rows: Array, key: Array) -> Array:
        """The actions of held-out evaluations, for a batch of inputs [B, ...]."""

    def sample(self, policy: PyTree, rows: Array, key: Array) -> Array:
        """Actions of the stochastic policy, without exploration noise."""


class StepLearner(_Learner, Protocol):
    """A learner of ``steps``."""

    plays: ClassVar[Literal["steps"]]

    def act(self, policy: PyTree, observation: Array, key: Array) -> Decision:
        """Actions for a batch of observations [B, ...], and what the update needs to know about them."""

    def update(self, state: State, episodes: Episodes, key: Array) -> Update:
        """Learn from one window's episodes."""

    def for_vmap(self) -> StepLearner:
        """The same learner for calls that are ``vmap``ped over runs: no branches, as all would be computed."""


class GoalLearner(_Learner, Protocol):
    """A learner of ``goals``."""

    plays: ClassVar[Literal["goals"]]

    def noise(self, key: Array, shape: tuple[int, int, int]) -> PyTree:
        """The random numbers of a window's actions [T, B, m]."""

    def explore(self, policy: PyTree, rows: Array, noise: PyTree) -> Array:
        """Actions [B, m] for training, from one step's noise [B, ...]."""

    def update(
        self, state: State, episodes: GoalEpisodes, key: Array, *, n_groups: int = 1, with_signal: bool = False
    ) -> Update:
        """Learn from one window's episodes; without ``with_signal`` the signal is 0."""


Learner = StepLearner | GoalLearner
"""``plays`` tells the two apart."""
