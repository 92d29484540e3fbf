"""The ladder of a family's contexts as named arrays: built, and every cell checked in our simulator and the stock one.

A cell is invalid where the solver does not solve it in time, where more steps remain than at the level below it, where
a restore is not exact, where simulator and stock environment part on the way to success, or, at level 0, where it is
not the stock start or a success already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, Family, States, StockEnv, StockFamily, ValidatedFamily
from scout_rl.bench.settings.bank import BankPart
from scout_rl.bench.settings.settings import Setting

UNSOLVED = -1


class Step(NamedTuple):
    """What a cell's solution shows after a step."""

    observation: NDArray[Any]
    success: bool


class Checked(NamedTuple):
    """What was found."""

    remaining: NDArray[np.int64]
    """[contexts, levels]: the solver's steps to success; -1 where there is no solution."""
    reasons: dict[tuple[int, int], list[str]]
    """Why cells are invalid, by (row, level); valid cells are not in it."""

    @property
    def invalid_rate(self) -> float:
        """The share of invalid cells."""
        return len(self.reasons) / self.remaining.size


def build(family: Family, contexts: Mapping[str, NDArray[Any]], source: str, n_levels: int) -> States:
    """The ladder [contexts, levels, ...] of that source, ``manual`` or ``solver``."""
    made = {"manual": family.starts, "solver": family.solver_ladder}
    if source not in made:
        raise ValueError(f"a {source} ladder is not built from contexts alone: read it from its run's folder")
    return made[source](contexts, n_levels)


def a_few(part: BankPart, n: int) -> list[int]:
    """The first contexts of every evaluation group, about ``n`` in all."""
    groups = np.unique(part.evaluation_group)
    each = -(-n // len(groups))
    return [int(x) for g in groups for x in np.flatnonzero(part.evaluation_group == g)[:each]]


def check(
    family: StockFamily,
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    ladder: States,
    tick: Callable[[], None] = lambda: None,
    source: str = "manual",
) -> Checked:
    """Check every cell of ``ladder`` [contexts, levels, ...]; ``tick`` is called after each context.

    On a policy's way the solver's remaining steps may rise: policies take detours.
    """
    n_contexts, n_levels = next(iter(ladder.values())).shape[:2]
    simulator = family.batch_simulator(setting)
    found = Checked(np.full((n_contexts, n_levels), UNSOLVED, dtype=np.int64), {})
    solutions = _solutions(family, ladder, found)
    _remaining_steps(found, simulator.max_steps, may_rise=source == "policy")
    _level_0(found, ladder, family.target_starts(contexts))
    traces = _in_simulator(simulator, ladder, solutions, found)
    for row in range(n_contexts):
        env = family.stock_env(setting, {name: array[row] for name, array in contexts.items()})
        _in_stock(env, row, ladder, solutions, traces, found)
        tick()
    return Checked(found.remaining, dict(sorted(found.reasons.items())))


def check_validated(
    family: ValidatedFamily, contexts: Mapping[str, NDArray[Any]], ladder: States, source: str
) -> tuple[Checked, tuple[str, ...]]:
    """Check every cell with the family's own offline validation and solver; also returns its warnings.

    On a policy's way the solver may be lost: that such a state can be solved was shown by the policy.
    """
    n_contexts, n_levels = next(iter(ladder.values())).shape[:2]
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}
    steps = _steps(family, flat, one_by_one=source == "policy")
    report = family.check_ladder(contexts, ladder, source)
    found = Checked(np.array(steps, dtype=np.int64).reshape(n_contexts, n_levels), {})
    for problem in report.problems:
        _add(found, problem.context, problem.level, problem.reason)
    for row, level in np.argwhere((found.remaining == UNSOLVED) & (source != "policy")):
        _add(found, int(row), int(level), "the solver does not solve it")
    return Checked(found.remaining, dict(sorted(found.reasons.items()))), report.warnings


def _steps(family: ValidatedFamily, states: States, *, one_by_one: bool) -> list[int]:
    """The solver's steps to success from each state. All together is fast, but fails where one has no solution."""
    if not one_by_one:
        return [UNSOLVED if s is None else len(s.actions) for s in family.solutions(states)]
    steps = []
    for i in range(len(next(iter(states.values())))):
        try:
            steps.append(len(family.trajectory({name: array[i] for name, array in states.items()}).actions))
        except ValueError:
            steps.append(UNSOLVED)
    return steps


Solutions = dict[tuple[int, int], NDArray[Any]]
Traces = dict[tuple[int, int], list[Step]]


def _add(found: Checked, row: int, level: int, reason: str) -> None:
    found.reasons.setdefault((int(row), int(level)), []).append(reason)


def _solutions(family: Family, ladder: States, found: Checked) -> Solutions:
    """The solver's actions from every cell that it solves."""
    solutions = {}
    for row, level in np.ndindex(found.remaining.shape):
        try:
            actions = family.trajectory({name: array[row, level] for name, array in ladder.items()}).actions
        except ValueError as unsolved:
            _add(found, row, level, str(unsolved))
            continue
        solutions[row, level] = actions
        found.remaining[row, level] = len(actions)
    return solutions


def _remaining_steps(found: Checked, max_steps: int, *, may_rise: bool) -> None:
    for (row, level), steps in np.ndenumerate(found.remaining):
        if steps > max_steps:
            _add(found, row, level, f"{steps} steps to success, but the time limit is {max_steps}")
        below = found.remaining[row, level - 1] if level else UNSOLVED
        if UNSOLVED < below < steps and not may_rise:
            _add(found, row, level, f"{steps} steps remain, and only {below} at level {level - 1}")


def _level_0(found: Checked, ladder: States, target: States) -> None:
    for name, array in target.items():
        for row in range(len(array)):
            if not np.array_equal(ladder[name][row, 0], array[row]):
                _add(found, row, 0, f"{name} is not the target start's")


def _in_simulator(simulator: BatchSimulator, ladder: States, solutions: Solutions, found: Checked) -> Traces:
    """Play every solution, twice from two restores; what the first showed, step by step."""
    cells = list(solutions)
    if not cells:
        return {}
    starts = {name: np.stack([array[cell] for cell in cells]) for name, array in ladder.items()}
    first = _trace(simulator, starts, [solutions[cell] for cell in cells])
    back = simulator.get_states(simulator.reset_to(starts))
    again = _trace(simulator, back, [solutions[cell] for cell in cells])
    for i, cell in enumerate(cells):
        changed = [name for name, array in starts.items() if not np.array_equal(array[i], back[name][i])]
        if changed:
            _add(found, *cell, f"restoring it in the simulator changes {', '.join(changed)}")
        at = _parting(first[i], again[i])
        if at is not None:
            _add(found, *cell, f"two restores in the simulator differ at step {at}")
        succeeds = [step.success for step in first[i][1:]]
        if succeeds and (any(succeeds[:-1]) or not succeeds[-1]):
            _add(found, *cell, "the solver's actions do not end with the first success")
    return dict(zip(cells, first, strict=True))


def _trace(simulator: BatchSimulator, starts: States, actions: Sequence[NDArray[Any]]) -> list[list[Step]]:
    """For each start what its actions show, the start first; all are stepped as one batch."""
    state = simulator.reset_to(starts)
    seen = np.asarray(simulator.observe(state))
    traces = [[Step(seen[i], False)] for i in range(len(actions))]
    still = next((a[:1] for a in actions if len(a)), None)
    for t in range(max(len(a) for a in actions)):
        chosen = np.concatenate([a[t : t + 1] if t < len(a) else still for a in actions])
        state, transition = simulator.step(state, chosen)
        seen, success = np.asarray(transition.observation), np.asarray(transition.success)
        for i, a in enumerate(actions):
            if t < len(a):
                traces[i].append(Step(seen[i], bool(success[i])))
    return traces


def _in_stock(env: StockEnv, row: int, ladder: States, solutions: Solutions, traces: Traces, found: Checked) -> None:
    """The context's own start, and every solution twice, each restored after the others were played."""
    env.reset()
    for name, array in env.state().items():
        if not np.array_equal(array, ladder[name][row, 0]):
            _add(found, row, 0, f"{name} is not that of the stock start")
    levels = [level for level in range(found.remaining.shape[1]) if (row, level) in solutions]
    first: dict[int, list[Step]] = {}
    for level in (*levels, *levels):
        state = {name: array[row, level] for name, array in ladder.items()}
        trace = [Step(env.restore(state), False)]
        if level == 0 and level not in first and env.is_success():
            _add(found, row, 0, "a target start that is a success already")
        changed = [name for name, array in env.state().items() if not np.array_equal(array, state[name])]
        for action in solutions[row, level]:
            seen = env.step(action)
            trace.append(Step(seen.observation, seen.success))
        if level in first:
            at = _parting(first[level], trace)
            if at is not None:
                _add(found, row, level, f"two restores in the stock environment differ at step {at}")
            continue
        first[level] = trace
        if changed:
            _add(found, row, level, f"restoring it in the stock environment changes {', '.join(changed)}")
        at = _parting(traces[row, level], trace)
        if at is not None:
            _add(found, row, level, f"simulator and stock environment differ at step {at} of the solution")


def _parting(a: Sequence[Step], b: Sequence[Step]) -> int | None:
    """The first step after which two traces show different things."""
    for t, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.success != y.success or not np.array_equal(x.observation, y.observation):
            return t
    return None
