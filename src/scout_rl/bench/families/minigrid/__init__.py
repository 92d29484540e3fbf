"""MiniGrid: DoorKey and MultiRoom with the stock partial view, stepped in JAX."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, Solution, States
from scout_rl.bench.families.minigrid import codec, contexts, operator, solver
from scout_rl.bench.families.minigrid.simulator import Simulator, State, StepResult
from scout_rl.bench.families.minigrid.stock import Stock
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report


@dataclass(frozen=True)
class Batch:
    """The simulator as the contract's `BatchSimulator`; training uses its pure functions instead."""

    simulator: Simulator

    @property
    def max_steps(self) -> int:
        """The stock time limit."""
        return self.simulator.max_steps

    def reset_to(self, states: Mapping[str, NDArray[Any]]) -> State:
        """Restore named arrays [n, ...]."""
        return codec.to_simulator(self.simulator, states)

    def get_states(self, state: State) -> States:
        """The named arrays [n, ...] of a batch."""
        return codec.from_simulator(self.simulator, state)

    def observe(self, state: State) -> Any:
        """The partial views uint8[n, 7, 7, 3]."""
        return _observe(self.simulator, state)

    def step(self, state: State, action: Any) -> tuple[State, StepResult]:
        """One step of every environment."""
        result: tuple[State, StepResult] = _step(self.simulator, state, action)
        return result


@functools.partial(jax.jit, static_argnums=0)
def _observe(simulator: Simulator, state: State) -> Any:
    return jax.vmap(simulator.observe)(state)


@functools.partial(jax.jit, static_argnums=0)
def _step(simulator: Simulator, state: State, action: Any) -> Any:
    return jax.vmap(simulator.step)(state, action)


class MiniGrid(Family):
    """The family's files behind the contract."""

    key = "minigrid"
    discrete = True

    def sample_bank(self, setting: Setting) -> ContextBank:
        """Stock layouts by seed."""
        return contexts.sample_bank(setting)

    def simulator(self, setting: Setting) -> Simulator:
        """The pure functions, with the stock environment's size and time limit."""
        env = contexts.stock_env(setting)
        return Simulator(width=env.width, height=env.height, max_steps=env.max_steps)

    def batch_simulator(self, setting: Setting) -> Batch:
        """The pure functions as a batch."""
        return Batch(self.simulator(setting))

    def target_starts(self, bank_contexts: Mapping[str, NDArray[Any]]) -> States:
        """The stock starts."""
        return contexts.target_starts(bank_contexts)

    def starts(self, bank_contexts: Mapping[str, NDArray[Any]], n_levels: int) -> States:
        """DoorKey stages, or the route through the rooms."""
        return operator.starts(bank_contexts, n_levels)

    def solutions(self, states: Mapping[str, NDArray[Any]]) -> list[Solution]:
        """Shortest solutions."""
        return [solver.trajectory(state) for state in solver.each(states)]

    def rungs(self, n_steps: int, n_levels: int) -> NDArray[np.int64]:
        """Even fractions of all steps but the last."""
        return solver.rungs(n_steps, n_levels)

    def as_starts(self, states: Mapping[str, NDArray[Any]]) -> States:
        """Step counters at 0; nothing else depends on how a state was reached."""
        return {**states, "step_count": np.zeros_like(states["step_count"])}

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, *, by_hand: bool) -> Report:
        """Nothing to check: starts of any source lie on a solution of their context, and grids restore exactly."""
        return Report(int(ladder["step_count"].size))

    def stock_env(self, setting: Setting, context: Mapping[str, NDArray[Any]], *, pixels: int = 0) -> Stock:
        """The unmodified environment, started from the context's seed."""
        return Stock(setting, context, pixels)

    def why_sketched(self) -> str:
        """Never: the stock renderer needs no GL."""
        return ""


FAMILY = MiniGrid()
