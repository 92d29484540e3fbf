"""MiniGrid: DoorKey and MultiRoom with the stock partial view, stepped in JAX."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.families.minigrid import codec, contexts, operator, solver
from scout_rl.bench.families.minigrid.simulator import Simulator
from scout_rl.bench.families.minigrid.stock import Stock
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Report


class Batch:
    """The simulator as the contract's `BatchSimulator`; training uses its pure functions instead."""

    def __init__(self, simulator: Simulator) -> None:
        self.max_steps = simulator.max_steps
        self.reset_to = functools.partial(codec.to_simulator, simulator)
        self.get_states = functools.partial(codec.from_simulator, simulator)
        self.observe = jax.jit(jax.vmap(simulator.observe))
        self.step = jax.jit(jax.vmap(simulator.step))


_batch = functools.cache(Batch)
"""Compiled once per size and time limit."""


class MiniGrid(Family):
    """The family's files behind the contract."""

    key = "minigrid"
    discrete = True
    sample_bank = staticmethod(contexts.sample_bank)
    target_starts = staticmethod(contexts.target_starts)
    starts = staticmethod(operator.starts)
    solutions = staticmethod(solver.solutions)
    rungs = staticmethod(solver.rungs)
    stock_env = staticmethod(Stock)

    def simulator(self, setting: Setting) -> Simulator:
        """The pure functions, with the stock environment's size and time limit."""
        env = contexts.stock_env(setting)
        return Simulator(width=env.width, height=env.height, max_steps=env.max_steps)

    def batch_simulator(self, setting: Setting) -> Batch:
        """The pure functions as a batch."""
        return _batch(self.simulator(setting))

    def check_ladder(self, bank_contexts: Mapping[str, NDArray[Any]], ladder: States, *, by_hand: bool) -> Report:
        """Nothing to check: starts of any source lie on a solution of their context, and grids restore exactly."""
        return Report(int(ladder["step_count"].size))

    def why_sketched(self) -> str:
        """Never: the stock renderer needs no GL."""
        return ""


FAMILY = MiniGrid()
