"""The contract that every environment family fulfils with its five files (`conformance.py` checks that it does).

======================  =====================================================================
``contexts.py``         what a context is; sampling a bank
``simulator.py``        n environments stepped as one batch
``operator.py``         the hand-built reset operator G(x, l)
``codec.py``            the batch simulator's state <-> named arrays
``solver.py``           a reference solution for any context
======================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting

States = dict[str, NDArray[Any]]
"""Named arrays of one simulator state, or of many with equal leading axes."""


class Solution(NamedTuple):
    """A solution of T steps: success comes with the last action."""

    states: States
    """Named arrays [T + 1, ...]; step counters are 0 in each, since each may become a start."""
    actions: NDArray[Any]
    """[T, ...]."""


Rungs = Callable[[int, int], NDArray[np.int64]]
"""A family's ``rungs``."""


class Transition(Protocol):
    """What a step of n environments returns; arrays with a leading axis of n."""

    @property
    def observation(self) -> Any:
        """What a policy sees after the step."""
        ...

    @property
    def reward(self) -> Any:
        """The stock environment's reward."""
        ...

    @property
    def success(self) -> Any:
        """bool[n]: the stock environment's success indicator."""
        ...

    @property
    def terminated(self) -> Any:
        """bool[n]."""
        ...

    @property
    def truncated(self) -> Any:
        """bool[n]: the time limit was reached."""
        ...


class BatchSimulator(Protocol):
    """N environments as one batch; ``state`` is whatever the simulator steps: a pytree, or a handle."""

    @property
    def max_steps(self) -> int:
        """The time limit, counted from the start, whatever its level."""
        ...

    def reset_to(self, states: Mapping[str, NDArray[Any]]) -> Any:
        """Restore named arrays [n, ...]."""
        ...

    def get_states(self, state: Any) -> States:
        """The named arrays [n, ...] that ``reset_to`` restores."""
        ...

    def observe(self, state: Any) -> Any:
        """What a policy sees [n, ...]."""
        ...

    def step(self, state: Any, action: Any) -> tuple[Any, Transition]:
        """One step of every environment."""
        ...


class GoalSimulator(BatchSimulator, Protocol):
    """A host simulator of goal-conditioned tasks; observations are dicts of ``observation``, ``achieved_goal`` and
    ``desired_goal``."""

    @property
    def n_actions(self) -> int:
        """Coordinates of an action, each in [-1, 1]."""
        ...

    def goal_radius(self, state: Any) -> NDArray[np.float64]:
        """[n]: a state whose achieved goal is within it of a goal is a success."""
        ...


class Family(Protocol):
    """One folder under ``families``; its ``__init__`` has an instance named ``FAMILY``."""

    @property
    def key(self) -> str:
        """The folder's name."""
        ...

    def sample_bank(self, setting: Setting) -> ContextBank:
        """The setting's contexts, drawn from ``setting.bank_seed`` alone."""
        ...

    def batch_simulator(self, setting: Setting) -> BatchSimulator:
        """The simulator of the setting's task."""
        ...

    def target_starts(self, contexts: Mapping[str, NDArray[Any]]) -> States:
        """The level-0 states [contexts, ...]."""
        ...

    def starts(self, contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """The hand-built ladder [contexts, levels, ...]."""
        ...

    def solver_ladder(self, contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """The trajectory-derived ladder [contexts, levels, ...]."""
        ...

    def trajectory(self, state: Mapping[str, NDArray[Any]]) -> Solution:
        """A reference solution from one state."""
        ...

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """int[levels]: the steps of a solution of ``n_steps`` whose states the levels start in; the first is 0."""
        ...

    def as_starts(self, states: Mapping[str, NDArray[Any]]) -> States:
        """States [n, ...] met on the way as starts: step counters at 0, derived arrays in agreement with the rest."""
        ...


class PureFamily(Family, Protocol):
    """A family whose simulator is pure functions of one environment: rollout and update compile into one call."""

    def simulator(self, setting: Setting) -> Any:
        """The pure functions: ``observe``, ``step`` and a time limit (`rollouts.device.PureSimulator`)."""
        ...


class Seen(NamedTuple):
    """What one step of a stock environment shows."""

    observation: Any
    """What the policy sees after the step, as the batch simulator would show it."""
    success: bool
    over: bool
    """Terminated, or the time limit was reached."""


class StockEnv(Protocol):
    """One unmodified environment of a context: what ours is compared with, and what pictures are rendered from."""

    def reset(self) -> Any:
        """Start the context as the stock environment does; what the policy sees."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Start an episode in the named arrays of one state; what the policy sees."""
        ...

    def state(self) -> States:
        """The named arrays of the present state."""
        ...

    def is_success(self) -> bool:
        """Whether the present state is a success."""
        ...

    def step(self, action: Any) -> Seen:
        """One step of the stock environment."""
        ...

    def render(self) -> NDArray[np.uint8]:
        """The stock renderer's picture uint8[height, width, 3] of the present state."""
        ...


class StockFamily(Family, Protocol):
    """A family that can also play its contexts in the unmodified environment."""

    def stock_env(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> StockEnv:
        """The environment of one context; to render, at about ``pixels`` along the longer side."""
        ...


class ValidatedFamily(Family, Protocol):
    """A family that validates whole ladders offline: grasps, bounds, restores."""

    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Any]:
        """Reference solutions of n states at once; None where there is none."""
        ...

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, source: str) -> Any:
        """A `scout_rl.ladders.validate.Report` on the ladder [contexts, levels, ...]."""
        ...
