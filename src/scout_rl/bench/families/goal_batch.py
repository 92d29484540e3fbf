"""Goal-conditioned MuJoCo environments as one batch: what the Fetch and PointMaze simulators share.

A simulator's state is a `Handle`: a step changes it in place and returns it. Named arrays of a state are those of the
batch, ``goal`` [n, k] and ``step_count`` int32[n], which is 0 in every start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution, States
from scout_rl.bench.families.mujoco_batch import Array, BatchPool, MujocoBatch
from scout_rl.files.refusal import Refusal

GoalObservation = dict[str, NDArray[np.float64]]
"""``observation``, ``achieved_goal`` and ``desired_goal``, each [n, ...], as in the stock environment."""

CHUNK = 16
"""States turned into starts at once."""


class StepResult(NamedTuple):
    """What a step of n environments returns."""

    observation: GoalObservation
    reward: NDArray[np.floating[Any]]
    success: NDArray[np.bool_]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class Handle:
    """n environments in the middle of their episodes."""

    def __init__(self, pool: BatchPool, states: Mapping[str, Array]) -> None:
        n = len(states["step_count"])
        self.goal = np.array(states["goal"], dtype=np.float64)
        self.step_count = np.array(states["step_count"], dtype=np.int32)
        self.batch: MujocoBatch = pool.lend(self, n)
        self.read: tuple[NDArray[np.float64], NDArray[np.float64]]
        """Observation and achieved goal of the present state; callers get copies."""


class MujocoGoalSimulator(ABC):
    """A family fills in the stock semantics: ``advance``, ``read``, ``judge``, ``success_distance``."""

    def __init__(self, pool: BatchPool, max_steps: int, n_actions: int) -> None:
        self.pool = pool
        self.max_steps = max_steps
        self.n_actions = n_actions

    @abstractmethod
    def advance(self, state: Handle, action: Array) -> None:
        """One stock step with clipped actions [n, n_actions]."""

    @abstractmethod
    def read(self, batch: MujocoBatch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The stock observation [n, ...] and achieved goal [n, k]."""

    @abstractmethod
    def judge(self, achieved: Array, goal: Array) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """The stock reward and success indicator [n]."""

    @property
    @abstractmethod
    def success_distance(self) -> float:
        """A state within this distance of its goal is a success."""

    def goal_radius(self, state: Handle) -> NDArray[np.float64]:
        """[n]: the same for every environment."""
        return np.full(state.batch.n, self.success_distance)

    def reset_to(self, states: Mapping[str, Array]) -> Handle:
        """Restore named arrays [n, ...]."""
        for name in ("goal", "step_count"):
            if name not in states:
                raise Refusal(f"the state lacks the array {name!r}.")
        handle = Handle(self.pool, states)
        handle.batch.set_states(states)
        handle.read = self.read(handle.batch)
        return handle

    def get_states(self, state: Handle) -> States:
        """The named arrays [n, ...] from which ``reset_to`` continues bit for bit."""
        return {**state.batch.get_states(), "goal": state.goal.copy(), "step_count": state.step_count.copy()}

    def as_starts(self, states: Mapping[str, Array]) -> States:
        """States [n, ...] as starts: step counters at 0, derived arrays in agreement with qpos."""
        n = len(states["goal"])
        states = {**states, "step_count": np.zeros(n, dtype=np.int32)}
        parts = []
        for begin in range(0, n, CHUNK):
            rows = np.minimum(np.arange(begin, begin + CHUNK), n - 1)
            chunk = {name: np.asarray(array)[rows] for name, array in states.items()}
            handle = Handle(self.pool, chunk)
            handle.batch.as_starts(chunk)
            parts.append(self.get_states(handle))
        return {name: np.concatenate([part[name] for part in parts])[:n] for name in parts[0]}

    def observe(self, state: Handle) -> GoalObservation:
        """What a policy sees."""
        return _goal_observation(*state.read, state.goal)

    def is_success(self, state: Handle) -> NDArray[np.bool_]:
        """The stock success indicator of the states themselves."""
        return self.judge(state.read[1], state.goal)[1]

    def step(self, state: Handle, action: Any) -> tuple[Handle, StepResult]:
        """One step of every environment."""
        action = np.asarray(action)
        if action.shape != (state.batch.n, self.n_actions):
            expected = (state.batch.n, self.n_actions)
            raise Refusal(f"actions have shape {action.shape}, and not {expected}.")
        # Floats keep their type: the stock environment computes in the action's own precision.
        action = action if action.dtype.kind == "f" else action.astype(np.float64)
        self.advance(state, action.clip(-1.0, 1.0))
        state.step_count += 1
        state.read = self.read(state.batch)
        reward, success = self.judge(state.read[1], state.goal)
        observation = _goal_observation(*state.read, state.goal)
        never = np.zeros(state.batch.n, dtype=np.bool_)
        return state, StepResult(observation, reward, success, never, state.step_count >= self.max_steps)


def _goal_observation(observation: Array, achieved: Array, goal: Array) -> GoalObservation:
    return {"observation": observation.copy(), "achieved_goal": achieved.copy(), "desired_goal": goal.copy()}


def record_until_success(
    simulator: MujocoGoalSimulator,
    states: Mapping[str, Array],
    act: Callable[[GoalObservation], Array],
    max_steps: int,
) -> list[Solution]:
    """Play a scripted controller from n states; each solution ends with its first success, after at least 1 step."""
    handle = simulator.reset_to(states)
    observation, steps = simulator.observe(handle), [simulator.get_states(handle)]
    actions: list[Array] = []
    length = np.zeros(len(handle.goal), dtype=int)
    while not length.all() and len(actions) < max_steps:
        actions.append(np.asarray(act(observation)))
        handle, result = simulator.step(handle, actions[-1])
        steps.append(simulator.get_states(handle))
        observation = result.observation
        length[result.success & (length == 0)] = len(actions)
    if not length.all():
        unsolved = np.flatnonzero(length == 0)
        raise Refusal(
            f"the solver does not solve {len(unsolved)} of {len(length)} states in {max_steps} steps; the first is "
            f"state {unsolved[0]}, goal {handle.goal[unsolved[0]].round(3).tolist()}."
        )
    played = {name: np.stack([step[name] for step in steps], axis=1) for name in steps[0]}
    solutions = []
    for i, end in enumerate(length):
        path = {name: array[i, : end + 1] for name, array in played.items()}
        solutions.append(Solution(simulator.as_starts(path), np.stack([a[i] for a in actions[:end]])))
    return solutions
