"""The contract of an environment family and its five files. A test checks every family.

======================  =====================================================================
``contexts.py``         what a context is; sampling a bank
``simulator.py``        n environments stepped as one batch
``operator.py``         the hand-built reset operator G(x, l)
``codec.py``            the batch simulator's state <-> named arrays
``solver.py``           a reference solution for any context
======================  =====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.codecs.codec import State
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.ladder import Ladder, level_fractions
from scout_rl.ladders.picture import NO_GL, mujoco_renders
from scout_rl.ladders.trajectory import Trajectory
from scout_rl.ladders.validate import Report

States = dict[str, NDArray[Any]]
"""Named arrays of one simulator state, or of many with equal leading axes."""


class Solution(NamedTuple):
    """A solution of T steps: success comes with the last action."""

    states: States
    """Named arrays [T + 1, ...]; step counters are 0 in each, since each may become a start."""
    actions: NDArray[Any]
    """[T, ...]."""


class StepResult(NamedTuple):
    """What a step of n environments returns; arrays with a leading axis of n."""

    observation: Any
    """What a policy sees after the step."""
    reward: Any
    """The stock environment's reward."""
    success: Any
    """bool[n]: the stock environment's success indicator."""
    terminated: Any
    """bool[n]."""
    truncated: Any
    """bool[n]: the time limit was reached."""


class BatchSimulator(Protocol):
    """N environments as one batch; ``state`` is what the simulator steps: a pytree or a handle."""

    max_steps: int
    """The time limit in steps, counted from the start of any level."""

    def reset_to(self, states: Mapping[str, NDArray[Any]]) -> Any:
        """Restore named arrays [n, ...]."""

    def get_states(self, state: Any) -> States:
        """The named arrays [n, ...] that ``reset_to`` restores."""

    def observe(self, state: Any) -> Any:
        """What a policy sees [n, ...]."""

    def step(self, state: Any, action: Any) -> tuple[Any, StepResult]:
        """One step of every environment."""


class GoalSimulator(BatchSimulator, Protocol):
    """A host simulator of goal-conditioned tasks.

    Observations are dicts of ``observation``, ``achieved_goal`` and ``desired_goal``.
    """

    n_actions: int
    """Coordinates of an action, each in [-1, 1]."""

    def goal_radius(self, state: Any) -> NDArray[np.float64]:
        """[n]: a state is a success when its achieved goal is within this distance of the goal."""

    def is_success(self, state: Any) -> NDArray[np.bool_]:
        """bool[n]: the stock success indicator of the states themselves."""

    def rest(self, state: Any, resting: NDArray[np.bool_]) -> None:
        """Steps leave out these environments [n] from now on. They keep their success, and the others do the same."""


class StockStep(NamedTuple):
    """What one step of a stock environment returns."""

    observation: Any
    """What the policy sees after the step, in the batch simulator's form."""
    success: bool
    over: bool
    """Terminated, or the time limit was reached."""
    reward: float
    terminated: bool
    info: dict[str, Any]
    """The stock environment's own."""


class StockEnv(Protocol):
    """One unmodified environment of a context. Ours is compared with it, and it renders the pictures.

    It can be restored in a state of any context of the same group.
    """

    env: Any
    """The unmodified Gymnasium environment."""
    shown: Any
    """The stock environment's own observation after the last reset, restore or step."""

    def reset(self) -> Any:
        """Start the context as the stock environment does; returns what the policy sees."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Start an episode in the named arrays of one state; returns what the policy sees."""

    def state(self) -> States:
        """The named arrays of the present state."""

    def is_success(self) -> bool:
        """Whether the present state is a success."""

    def step(self, action: Any) -> StockStep:
        """One step of the stock environment."""

    def render(self) -> NDArray[np.uint8]:
        """The stock renderer's picture uint8[height, width, 3] of the present state."""


class Family(ABC):
    """One folder under ``families``; its ``__init__`` has an instance named ``FAMILY``."""

    key: str
    """The folder's name."""
    discrete: bool = False
    """Whether states are discrete. Then the solver's steps fall with the level, and every step can be compared with the
    stock environment's."""

    @abstractmethod
    def sample_bank(self, setting: Setting) -> ContextBank:
        """The setting's contexts; they depend on ``setting.bank_seed`` alone."""

    @abstractmethod
    def batch_simulator(self, setting: Setting) -> BatchSimulator:
        """The simulator of the setting's task."""

    def simulator(self, setting: Setting) -> Any:
        """Pure functions of one environment (`rollouts.device.PureSimulator`), for compiled rollouts."""
        raise Refusal(f"family {self.key!r} has no pure simulator")

    @abstractmethod
    def target_starts(self, contexts: Mapping[str, NDArray[Any]]) -> States:
        """The level-0 states [contexts, ...]."""

    @abstractmethod
    def starts(self, contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """The hand-built ladder [contexts, levels, ...]."""

    @abstractmethod
    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Solution]:
        """A reference solution of each of n states; a ``ValueError`` where one has none."""

    def as_starts(self, states: Mapping[str, NDArray[Any]]) -> States:
        """States [n, ...] of an episode as starts: step counters at 0, derived arrays (if there are any) recomputed."""
        return {**states, "step_count": np.zeros_like(states["step_count"])}

    @abstractmethod
    def check_ladder(self, contexts: Mapping[str, NDArray[Any]], ladder: States, *, by_hand: bool) -> Report:
        """Check that every cell of ``ladder`` [contexts, levels, ...] is a start to train from.

        ``by_hand``: scaffolds were placed, not taken from an episode.
        """

    @abstractmethod
    def stock_env(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> StockEnv:
        """The unmodified environment of one context; it renders about ``pixels`` along the longer side."""

    def why_sketched(self) -> str:
        """Why `sketch` draws the cells of a picture; empty where the stock renderer does."""
        return "" if mujoco_renders() else f"{NO_GL}: the cells are sketched from the side."

    def sketch(self, axis: Any, state: States, target: States) -> None:  # noqa: B027
        """Draw a start without a renderer; ``target`` is the level-0 start of its context."""

    def trajectory(self, state: Mapping[str, NDArray[Any]]) -> Solution:
        """The reference solution of one state."""
        return self.solutions({name: np.asarray(array)[None] for name, array in state.items()})[0]

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """int[levels]: the steps of a solution of ``n_steps`` at which the levels start; the first is 0.

        They are nearest to the levels' shares of the solution's time, by the rule of `Ladder.from_trajectories`.
        """
        trajectory = Trajectory(
            states=tuple(State({"step": np.array(t)}, "index", {}) for t in range(n_steps + 1)),
            actions=np.zeros(n_steps),
            rewards=np.zeros(n_steps),
            success=np.arange(n_steps) == n_steps - 1,
        )
        return np.asarray(Ladder.from_trajectories([trajectory], level_fractions(n_levels)).stack()["step"][0])

    def solver_ladder(self, contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """The ladder [contexts, levels, ...] of the solver's states at the rungs."""
        rows = []
        for states, actions in self.solutions(self.target_starts(contexts)):
            steps = self.rungs(len(actions), n_levels)
            rows.append({name: array[steps] for name, array in states.items()})
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
