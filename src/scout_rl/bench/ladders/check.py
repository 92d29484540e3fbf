"""Check every cell of a setting's ladder for `scout ladder`, by the family's validation and by its solver.

In a discrete family a cell is also invalid if the solver does not solve it in time, if more steps remain than at the
level below, if a restore is not exact, or if simulator and stock environment differ on the way to success. A level-0
cell is invalid too if it is not the stock start or is already a success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, Family, States, StockEnv
from scout_rl.bench.ladders import SOURCES, Source
from scout_rl.bench.settings.bank import BankPart
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.validate import Finding, Problem, Report, where

UNSOLVED = -1
Actions = Sequence[NDArray[Any] | None]
"""By cell: the solver's actions; None if there is no solution."""


Step = tuple[NDArray[Any], bool]
"""What a policy would see after a step of a cell's solution: observation and success."""


class Checked(NamedTuple):
    """The result of `check`."""

    remaining: NDArray[np.int64]
    """[contexts, levels]: the solver's steps to success; -1 if there is no solution."""
    report: Report


def a_few(part: BankPart, n: int) -> list[int]:
    """The first contexts of every evaluation group, about ``n`` in all."""
    groups = np.unique(part.evaluation_group)
    each = -(-n // len(groups))
    return [int(x) for g in groups for x in np.flatnonzero(part.evaluation_group == g)[:each]]


def check(
    family: Family,
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    ladder: States,
    source: Source = SOURCES["manual"],
    tick: Callable[[], None] = lambda: None,
) -> Checked:
    """Check every cell of ``ladder`` [contexts, levels, ...]; ``tick`` is called after each compared context.

    Policies take detours, so on a policy's ladder the solver's remaining steps may rise. In a family that is not
    discrete the solver may also fail there: the policy has shown that the state can be solved.
    """
    shape = next(iter(ladder.values())).shape[:2]
    starts = {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}
    solutions, unsolved = _solve(family, starts)
    remaining = np.array([UNSOLVED if a is None else len(a) for a in solutions]).reshape(shape)

    def findings() -> Iterator[Finding]:
        if family.discrete or not source.from_runs:
            yield from unsolved
        if family.discrete:
            simulator = family.batch_simulator(setting)
            yield from _in_time(remaining, simulator.max_steps, may_rise=source.from_runs)
            for name, array in family.target_starts(contexts).items():
                differs = (ladder[name] != array[:, None]).reshape(*shape, -1).any(axis=-1)
                yield from where((differs & (np.arange(shape[1]) == 0)).ravel(), f"{name} is not the target start's")
            traces = _traces(simulator, starts, solutions)
            yield from _restored(simulator, starts, solutions, traces)
            for row in range(shape[0]):
                cells = range(row * shape[1], (row + 1) * shape[1])
                env = family.stock_env(setting, {name: array[row] for name, array in contexts.items()})
                yield from _in_stock(env, cells, starts, solutions, traces)
                tick()

    report = family.check_ladder(contexts, ladder, by_hand=source.by_hand)
    problems = [*report.problems, *(Problem(i // shape[1], i % shape[1], 0, reason) for i, reason in findings())]
    ordered = tuple(sorted(problems, key=lambda problem: problem[:3]))
    return Checked(remaining, Report(report.n_cells, ordered, report.warnings))


def _solve(family: Family, states: States) -> tuple[Actions, list[Finding]]:
    """The solver's actions, and why it has none. All at once is fast, but fails if one state has no solution."""
    try:
        return [solution.actions for solution in family.solutions(states)], []
    except ValueError:
        pass
    solutions: list[NDArray[Any] | None] = []
    unsolved = []
    for i in range(len(next(iter(states.values())))):
        try:
            solutions.append(family.trajectory({name: array[i] for name, array in states.items()}).actions)
        except ValueError as error:
            solutions.append(None)
            unsolved.append((i, str(error)))
    return solutions, unsolved


def _in_time(remaining: NDArray[np.int64], max_steps: int, *, may_rise: bool) -> Iterator[Finding]:
    for i, ((row, level), steps) in enumerate(np.ndenumerate(remaining)):
        if steps > max_steps:
            yield i, f"{steps} steps to success, but the time limit is {max_steps}"
        below = remaining[row, level - 1] if level else UNSOLVED
        if UNSOLVED < below < steps and not may_rise:
            yield i, f"{steps} steps remain, and only {below} at level {level - 1}"


def _traces(simulator: BatchSimulator, starts: States, solutions: Actions) -> list[list[Step]]:
    """For each start the steps of its solution, the start first; all are stepped as one batch."""
    actions = [np.zeros(0, dtype=int) if a is None else a for a in solutions]
    state = simulator.reset_to(starts)
    observation = np.asarray(simulator.observe(state))
    traces: list[list[Step]] = [[(observation[i], False)] for i in range(len(actions))]
    still = next((a[:1] for a in actions if len(a)), np.zeros(1, dtype=int))
    for t in range(max(len(a) for a in actions)):
        batch_actions = np.concatenate([a[t : t + 1] if t < len(a) else still for a in actions])
        state, result = simulator.step(state, batch_actions)
        observation, success = np.asarray(result.observation), np.asarray(result.success)
        for i, a in enumerate(actions):
            if t < len(a):
                traces[i].append((observation[i], bool(success[i])))
    return traces


def _restored(
    simulator: BatchSimulator, starts: States, solutions: Actions, traces: list[list[Step]]
) -> Iterator[Finding]:
    """Play every solution again, from the states that the simulator returns for restored starts."""
    back = simulator.get_states(simulator.reset_to(starts))
    again = _traces(simulator, back, solutions)
    for i, solution in enumerate(solutions):
        if solution is None:
            continue
        changed = [name for name, array in starts.items() if not np.array_equal(array[i], back[name][i])]
        if changed:
            yield i, f"restoring it in the simulator changes {', '.join(changed)}"
        at = _parting(traces[i], again[i])
        if at is not None:
            yield i, f"two restores in the simulator differ at step {at}"
        succeeds = [success for _, success in traces[i][1:]]
        if succeeds and (any(succeeds[:-1]) or not succeeds[-1]):
            yield i, "the solver's actions do not end with the first success"


def _in_stock(
    env: StockEnv, cells: Sequence[int], starts: States, solutions: Actions, traces: list[list[Step]]
) -> Iterator[Finding]:
    """Check the context's start, and play every solution twice, each restored after the others were played."""
    env.reset()
    for name, array in env.state().items():
        if not np.array_equal(array, starts[name][cells[0]]):
            yield cells[0], f"{name} is not that of the stock start"
    first: dict[int, list[Step]] = {}
    for i in (*cells, *cells):
        actions = solutions[i]
        if actions is None:
            continue
        state = {name: array[i] for name, array in starts.items()}
        trace: list[Step] = [(env.restore(state), False)]
        if i == cells[0] and i not in first and env.is_success():
            yield i, "a target start that is a success already"
        changed = [name for name, array in env.state().items() if not np.array_equal(array, state[name])]
        for action in actions:
            result = env.step(action)
            trace.append((result.observation, result.success))
        if i in first:
            at = _parting(first[i], trace)
            if at is not None:
                yield i, f"two restores in the stock environment differ at step {at}"
            continue
        first[i] = trace
        if changed:
            yield i, f"restoring it in the stock environment changes {', '.join(changed)}"
        at = _parting(traces[i], trace)
        if at is not None:
            yield i, f"simulator and stock environment differ at step {at} of the solution"


def _parting(a: Sequence[Step], b: Sequence[Step]) -> int | None:
    """The first step after which two traces differ."""
    pairs = enumerate(zip(a, b, strict=True))
    return next((t for t, (x, y) in pairs if x[1] != y[1] or not np.array_equal(x[0], y[0])), None)
