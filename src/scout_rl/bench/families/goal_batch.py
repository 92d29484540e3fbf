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

from scout_rl.bench.families.family import GoalSimulator, Solution, States, StepResult
from scout_rl.bench.families.mujoco_batch import Array, BatchPool, MujocoBatch
from scout_rl.files.refusal import Refusal

GoalObservation = dict[str, NDArray[np.float64]]
"""``observation``, ``achieved_goal`` and ``desired_goal``, each [n, ...], as in the stock environment."""

CHUNK = 16
"""States turned into starts at once."""


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
    """A family fills in the stock semantics: ``advance``, ``read``, ``judge``.

    A state within ``success_distance`` of its goal is a success.
    """

    def __init__(self, pool: BatchPool, max_steps: int, n_actions: int, success_distance: float) -> None:
        self.pool, self.max_steps, self.n_actions = pool, max_steps, n_actions
        self.success_distance = success_distance

    @abstractmethod
    def advance(self, state: Handle, action: Array) -> None:
        """One stock step with clipped actions [n, n_actions]."""

    @abstractmethod
    def read(self, batch: MujocoBatch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The stock observation [n, ...] and achieved goal [n, k]."""

    @abstractmethod
    def judge(self, achieved: Array, goal: Array) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """The stock reward and success indicator [n]."""

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
        derived = {name: np.zeros((n, *shape)) for name, shape in self.pool.layout.derived.items()}
        states = {**states, **derived, "step_count": np.zeros(n, dtype=np.int32)}
        parts = []
        for begin in range(0, n, CHUNK):
            rows = np.minimum(np.arange(begin, begin + CHUNK), n - 1)
            chunk = {name: np.asarray(array)[rows] for name, array in states.items()}
            handle = Handle(self.pool, chunk)
            handle.batch.set_states(chunk, derived=False)
            parts.append(self.get_states(handle))
        return {name: np.concatenate([part[name] for part in parts])[:n] for name in parts[0]}

    def observe(self, state: Handle) -> GoalObservation:
        """What a policy sees."""
        observation, achieved = state.read
        return {"observation": observation.copy(), "achieved_goal": achieved.copy(), "desired_goal": state.goal.copy()}

    def is_success(self, state: Handle) -> NDArray[np.bool_]:
        """The stock success indicator of the states themselves."""
        return self.judge(state.read[1], state.goal)[1]

    def rest(self, state: Handle, resting: NDArray[np.bool_]) -> None:
        """Steps leave out these environments [n] from now on."""
        state.batch.awake = np.flatnonzero(~resting).tolist()

    def step(self, state: Handle, action: Any) -> tuple[Handle, StepResult]:
        """One step of every environment."""
        self.advance(state, clipped(action, (state.batch.n, self.n_actions)))
        state.step_count += 1
        state.read = self.read(state.batch)
        reward, success = self.judge(state.read[1], state.goal)
        never = np.zeros(state.batch.n, dtype=np.bool_)
        return state, StepResult(self.observe(state), reward, success, never, state.step_count >= self.max_steps)


def clipped(action: Any, shape: tuple[int, int]) -> Array:
    """Actions of that shape in [-1, 1]; floats keep their type, for the stock step computes in it."""
    action = np.asarray(action)
    if action.shape != shape:
        raise Refusal(f"actions have shape {action.shape}, and not {shape}.")
    return np.asarray((action if action.dtype.kind == "f" else action.astype(np.float64)).clip(-1.0, 1.0))


class Attempt(NamedTuple):
    """What a scripted controller did from one state: T steps, up to its first success."""

    solution: Solution
    """Its states are those of the episode, not yet starts."""
    achieved: NDArray[np.float64]
    """[T + 1, k]: the achieved goals."""
    solved: bool


def attempt(
    simulator: GoalSimulator, states: Mapping[str, Array], act: Callable[[GoalObservation], Array], max_steps: int
) -> list[Attempt]:
    """Play a scripted controller from states [n, ...], each for at least one step and up to its first success."""
    handle = simulator.reset_to(states)
    path, observations = [simulator.get_states(handle)], [simulator.observe(handle)]
    actions: list[Array] = []
    steps, solved = np.zeros(len(states["goal"]), dtype=int), np.zeros(len(states["goal"]), dtype=np.bool_)
    while not solved.all() and len(actions) < max_steps:
        actions.append(np.asarray(act(observations[-1])))
        handle, result = simulator.step(handle, actions[-1])
        path.append(simulator.get_states(handle))
        observations.append(result.observation)
        steps[~solved] += 1
        solved |= result.success
    played = {name: np.stack([states[name] for states in path]) for name in path[0]}
    taken, achieved = np.stack(actions), np.stack([seen["achieved_goal"] for seen in observations])
    return [
        Attempt(
            Solution({name: array[: t + 1, i] for name, array in played.items()}, taken[:t, i]),
            achieved[: t + 1, i],
            bool(solved[i]),
        )
        for i, t in enumerate(steps)
    ]


def solve(
    simulator: MujocoGoalSimulator, states: Mapping[str, Array], act: Callable[[GoalObservation], Array]
) -> list[Solution]:
    """A solution of each of n states in the time limit; a ``ValueError`` names a state without one."""
    attempts = attempt(simulator, states, act, simulator.max_steps)
    unsolved = [i for i, played in enumerate(attempts) if not played.solved]
    if unsolved:
        raise Refusal(
            f"the solver does not solve {len(unsolved)} of {len(attempts)} states in {simulator.max_steps} steps; "
            f"the first is state {unsolved[0]}, goal {states['goal'][unsolved[0]].round(3).tolist()}."
        )
    return [Solution(simulator.as_starts(played.states), played.actions) for played, _, _ in attempts]
