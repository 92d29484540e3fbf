"""The contract that every environment family fulfils with its five files, and the checks that it does.

======================  =====================================================================
``contexts.py``         what a context is; sampling a bank
``simulator.py``        n environments stepped as one batch
``operator.py``         the hand-built reset operator G(x, l)
``codec.py``            the batch simulator's state <-> named arrays
``solver.py``           a reference solution for any context
======================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scout_rl.bank import ContextBank
from scout_rl.settings import Setting

States = dict[str, NDArray[Any]]
"""Named arrays of one simulator state, or of many with equal leading axes."""


class Solution(NamedTuple):
    """A solution of T steps: success comes with the last action."""

    states: States
    """Named arrays [T + 1, ...]; step counters are 0 in each, since each may become a start."""
    actions: NDArray[Any]
    """[T, ...]."""


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


class PureFamily(Family, Protocol):
    """A family whose simulator is pure functions of one environment: rollout and update compile into one call."""

    def simulator(self, setting: Setting) -> Any:
        """The pure functions: ``observe``, ``step`` and a time limit (`scout_rl.rollout.PureSimulator`)."""
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
        """A `scout_rl.ladder_validation.Report` on the ladder [contexts, levels, ...]."""
        ...


def check_family(family: Family, setting: Setting, n_contexts: int = 8, seed: int = 0) -> list[str]:
    """What the family breaks of the contract, one sentence each; an empty list when it conforms.

    ``n_contexts`` train contexts are taken, each at every level of both ladders.
    """
    bank = family.sample_bank(setting)
    contexts = {name: array[:n_contexts] for name, array in bank.train.contexts.items()}
    ladders = {
        "hand-built ladder": family.starts(contexts, setting.n_levels),
        "solver ladder": family.solver_ladder(contexts, setting.n_levels),
    }
    faults = _bank_faults(family, setting, bank)
    target = family.target_starts(contexts)
    for name, ladder in ladders.items():
        shape_faults = _ladder_faults(name, ladder, target, setting.n_levels)
        faults += shape_faults
        if not shape_faults:
            faults += _solver_faults(name, family, setting, ladder)
    return faults + _simulator_faults(family, setting, ladders["hand-built ladder"], seed)


def _bank_faults(family: Family, setting: Setting, bank: ContextBank) -> list[str]:
    faults = []
    if family.sample_bank(setting).sha256 != bank.sha256:
        faults.append("bank: two samplings differ")
    if (len(bank.train), len(bank.held_out)) != (setting.n_train, setting.n_held_out):
        faults.append(f"bank: {len(bank.train)} train and {len(bank.held_out)} held-out contexts")
    for part in (bank.train, bank.held_out):
        counts = np.bincount(part.evaluation_group, minlength=len(setting.groups))
        if len(counts) != len(setting.groups) or (counts == 0).any():
            faults.append(f"bank: contexts by evaluation group are {counts.tolist()}")
    return faults


def _ladder_faults(name: str, ladder: States, target: States, n_levels: int) -> list[str]:
    faults = []
    if set(ladder) != set(target):
        return [f"{name}: arrays {sorted(ladder)}, but a state has {sorted(target)}"]
    for array_name, array in ladder.items():
        if array.shape[:2] != (len(target[array_name]), n_levels):
            faults.append(f"{name}: {array_name} has shape {array.shape}")
        elif not _same(array[:, 0], target[array_name]):
            faults.append(f"{name}: {array_name} at level 0 is not the target start")
    return faults


def _solver_faults(name: str, family: Family, setting: Setting, ladder: States) -> list[str]:
    """Every start is solved in time, and the remaining steps never rise with the level."""
    faults = []
    flat = {key: array.reshape(-1, *array.shape[2:]) for key, array in ladder.items()}
    n_starts = len(next(iter(flat.values())))
    solutions = [family.trajectory({key: array[i] for key, array in flat.items()}).actions for i in range(n_starts)]
    remaining = np.array([len(actions) for actions in solutions])
    simulator = family.batch_simulator(setting)
    if (remaining < 1).any() or (remaining > simulator.max_steps).any():
        faults.append(f"{name}: a start is already a success, or too far for the time limit of {simulator.max_steps}")
    rises = np.diff(remaining.reshape(-1, setting.n_levels), axis=1) > 0
    if rises.any():
        context, level = np.argwhere(rises)[0]
        faults.append(f"{name}: context {context} has more steps left at level {level + 1} than at level {level}")
    state, success = simulator.reset_to(flat), np.zeros(n_starts, dtype=bool)
    for t in range(int(remaining.max())):
        action = np.stack([actions[min(t, len(actions) - 1)] for actions in solutions])
        state, transition = simulator.step(state, action)
        due = remaining == t + 1
        early = np.asarray(transition.success) & (remaining > t + 1)
        success |= np.asarray(transition.success) & due
        if early.any():
            faults.append(f"{name}: start {int(np.argmax(early))} succeeds before its solution ends")
            break
    if not faults and not success.all():
        faults.append(f"{name}: the solution of start {int(np.argmin(success))} does not succeed")
    return faults


def _simulator_faults(family: Family, setting: Setting, ladder: States, seed: int) -> list[str]:
    """Restoring is exact, stepping is deterministic, and an episode can be cut and continued anywhere."""
    faults = []
    flat = {key: array.reshape(-1, *array.shape[2:]) for key, array in ladder.items()}
    n_starts = len(next(iter(flat.values())))
    simulator = family.batch_simulator(setting)
    if not _equal(simulator.get_states(simulator.reset_to(flat)), flat):
        faults.append("codec: restoring a state and reading it back changes it")
    pool = family.trajectory({key: array[0] for key, array in flat.items()}).actions
    actions = np.random.default_rng(seed).choice(pool, size=(12, n_starts))
    whole, cut = simulator.reset_to(flat), simulator.reset_to(flat)
    for t, action in enumerate(actions):
        if t == len(actions) // 2:
            cut = simulator.reset_to(simulator.get_states(cut))
        whole, expected = simulator.step(whole, action)
        cut, transition = simulator.step(cut, action)
        for field in ("observation", "reward", "success", "terminated", "truncated"):
            if not _same(getattr(expected, field), getattr(transition, field)):
                return [*faults, f"simulator: {field} differs at step {t} of an equal or restored episode"]
    return faults


def _equal(a: States, b: States) -> bool:
    return set(a) == set(b) and all(_same(a[name], b[name]) for name in a)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and set(a) == set(b) and all(_same(a[name], b[name]) for name in a)
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and np.array_equal(a, b)
