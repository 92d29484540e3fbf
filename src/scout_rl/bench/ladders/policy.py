"""The policy-derived ladder of a family's contexts: from policies' own successes, else from the solver's.

Sources are asked in order. A context takes the shortest success of the first one that solves it, of those whose states
pass the family's offline validation; the solver comes last and has to do for all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.ladders.attempts import ATTEMPTS, Policy, attempt_all, replay
from scout_rl.bench.settings.settings import Setting
from scout_rl.ladders.sources import Sources

SOLVER = "solver"


class Source(NamedTuple):
    """A policy that is asked for solutions."""

    name: str
    assisted: bool
    """Whether it was trained with scaffolds: contexts that take it count as bootstrapped."""
    policy: Policy


def build_policy_ladder(
    home: Family,
    setting: Setting,
    contexts: Mapping[str, NDArray[Any]],
    n_levels: int,
    sources: Sequence[Source],
    say: Callable[[str], None] = print,
) -> tuple[States, Sources]:
    """The ladder [contexts, levels, ...]; level 0 is the target start, whoever solved the context."""
    building = _Building(home, setting, contexts, n_levels, say)
    succeeded = np.zeros((len(sources), len(building.chosen)), dtype=int)
    for number, source in enumerate(sources):
        if len(building.left()):
            # All contexts, and not those that are left alone: so the attempts of a source depend on no other source.
            found = attempt_all(building.simulator, building.targets, source.policy)
            succeeded[number] = found.succeeded
            for rank in range(ATTEMPTS):
                solved = {int(x): a[rank] for x in building.left() if len(a := found.solutions[x]) > rank}
                building.take(number, solved, source.name)
    left = building.left()
    if len(left):
        building.take(len(sources), building.solve(left), SOLVER, must_do=True)
    return building.ladder, Sources(
        names=(*(source.name for source in sources), SOLVER),
        assisted=(*(source.assisted for source in sources), True),
        attempts=ATTEMPTS,
        succeeded=tuple(map(tuple, succeeded.tolist())),
        chosen=tuple(building.chosen.tolist()),
        steps=tuple(building.steps.tolist()),
    )


class _Building:
    """A ladder that is filled context by context."""

    def __init__(
        self,
        home: Family,
        setting: Setting,
        contexts: Mapping[str, NDArray[Any]],
        n_levels: int,
        say: Callable[[str], None],
    ) -> None:
        self.home, self.contexts, self.say = home, contexts, say
        self.simulator = home.batch_simulator(setting)
        self.targets = home.target_starts(contexts)
        n = len(next(iter(self.targets.values())))
        self.ladder = {name: np.repeat(array[:, None], n_levels, axis=1) for name, array in self.targets.items()}
        self.n_levels = n_levels
        self.chosen, self.steps = np.full(n, -1), np.zeros(n, dtype=int)

    def left(self) -> NDArray[np.int64]:
        """The contexts that no source has filled."""
        return np.flatnonzero(self.chosen < 0)

    def solve(self, rows: NDArray[np.int64]) -> dict[int, NDArray[Any]]:
        """The actions of the family's own solutions of those contexts."""
        solutions = self.home.solutions({name: array[rows] for name, array in self.targets.items()})
        return {int(x): solution.actions for x, solution in zip(rows, solutions, strict=True)}

    def take(self, source: int, solved: dict[int, NDArray[Any]], name: str, *, must_do: bool = False) -> None:
        """Fill the contexts in ``solved`` from their actions, where the states on the way are valid starts."""
        if not solved:
            return
        rows, actions = np.array(list(solved)), list(solved.values())
        starts = self.starts(rows, actions)
        contexts = {n: np.asarray(array)[rows] for n, array in self.contexts.items()}
        report = self.home.check_ladder(contexts, starts, "policy")
        if must_do and not report.ok:
            raise ValueError(f"the policy ladder's part from the {name} is invalid: {report}")
        for warning in report.warnings:
            self.say(f"policy ladder, {name}: {warning}")
        valid = np.ones(len(rows), dtype=bool)
        valid[[problem.context for problem in report.problems]] = False
        for array_name, array in starts.items():
            self.ladder[array_name][rows[valid]] = array[valid]
        self.chosen[rows[valid]] = source
        self.steps[rows[valid]] = np.array([len(a) for a in actions])[valid]

    def starts(self, rows: NDArray[np.int64], actions: list[NDArray[Any]]) -> States:
        """The starts [rows, levels, ...] along those solutions; level 0 is the target start."""
        rungs = np.stack([self.home.rungs(len(a), self.n_levels) for a in actions])
        targets = {name: array[rows] for name, array in self.targets.items()}
        met = replay(self.simulator, targets, actions, rungs)
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in met.items()}
        starts = {name: a.reshape(len(rows), -1, *a.shape[1:]) for name, a in self.home.as_starts(flat).items()}
        for name, array in starts.items():
            array[:, 0] = targets[name]
        return starts
