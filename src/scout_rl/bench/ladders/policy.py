"""Starts along the successes of trained policies, else along the solver's.

Runs play in order. A context takes the shortest success of the first run that solves it, among those whose states pass
the family's validation. The solver comes last and must solve the rest. An attempt keeps only actions. Restores are
exact, so the same actions give the same episode again; its states are read then, at the steps that the ladder needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import BatchSimulator, States
from scout_rl.bench.ladders.build import Built, Say, Wanted
from scout_rl.files.cache import code_hash, installed_versions
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.sources import Sources

Array = NDArray[Any]
Policy = Callable[[Any, Any], Array]
"""(observations [B, ...], key) to actions [B, ...]; all randomness comes from the key."""

ATTEMPTS = 5
"""Attempts per start, the paper's k."""
KEY = 11
"""Random key of all attempts, the same for every run, so that a policy's ladder depends on the policy alone."""
SOLVER = "solver"
CODE = ("bench/learners/*.py", "bench/rollouts/host.py", "bench/run/trained.py")
LIBRARIES = ("jax", "jaxlib", "equinox")


class TrainedRun(NamedTuple):
    """A run whose policy is played."""

    policy: Policy
    rule: str
    made_of: Mapping[str, Any]
    """JSON values that identify its policy."""

    @property
    def assisted(self) -> bool:
        """Whether it was trained with scaffolds. Then contexts that take it count as bootstrapped."""
        return self.rule != "target"

    @property
    def name(self) -> str:
        """Its name among the ladder's sources."""
        return "scaffold policy" if self.assisted else "target-start policy"


def made_of(wanted: Wanted) -> dict[str, Any]:
    """The policies, and the code and libraries that play them."""
    return {
        "runs": [dict(run.made_of) for run in wanted.runs],
        "attempts": ATTEMPTS,
        "key": KEY,
        "backend": jax.default_backend(),
        "code": code_hash(*CODE),
        "libraries": installed_versions(LIBRARIES),
    }


def build(wanted: Wanted, say: Say) -> Built:
    """The ladder and its sources; level 0 is always the target start."""
    runs: Sequence[TrainedRun] = wanted.runs
    building = _Building(wanted, say)
    n = len(building.source_of)
    say(f"policy ladder: {ATTEMPTS} attempts of {len(runs)} policies in {n} training contexts")
    succeeded = np.zeros((len(runs), n), dtype=int)
    for number, run in enumerate(runs):
        if len(building.left()):
            # All contexts, not only those that are left: the attempts of a run must not depend on other runs.
            solutions = attempt_all(building.simulator, building.targets, run.policy)
            succeeded[number] = [len(successes) for successes in solutions]
            for rank in range(ATTEMPTS):
                taken = {int(x): a[rank] for x in building.left() if len(a := solutions[x]) > rank}
                building.take(number, taken, run.name)
    left = building.left()
    if len(left):
        targets = {name: array[left] for name, array in building.targets.items()}
        solved = zip(left.tolist(), wanted.family.solutions(targets), strict=True)
        building.take(len(runs), {x: solution.actions for x, solution in solved}, SOLVER, must_do=True)
    sources = Sources(
        names=(*(run.name for run in runs), SOLVER),
        assisted=(*(run.assisted for run in runs), True),
        attempts=ATTEMPTS,
        succeeded=tuple(map(tuple, succeeded.tolist())),
        source_of=tuple(building.source_of.tolist()),
        steps=tuple(building.steps.tolist()),
    )
    return building.ladder, {**sources.as_dict(), "runs": made_of(wanted)["runs"]}


class _Building:
    """A ladder that is filled context by context."""

    def __init__(self, wanted: Wanted, say: Say) -> None:
        self.wanted, self.family, self.say = wanted, wanted.family, say
        self.simulator = self.family.batch_simulator(wanted.setting)
        self.targets = self.family.target_starts(wanted.contexts)
        self.ladder = {name: np.repeat(array[:, None], wanted.n_levels, axis=1) for name, array in self.targets.items()}
        n = len(next(iter(self.targets.values())))
        self.source_of, self.steps = np.full(n, -1), np.zeros(n, dtype=int)

    def left(self) -> NDArray[np.int64]:
        """The contexts that no source has filled."""
        return np.flatnonzero(self.source_of < 0)

    def take(self, source: int, solved: dict[int, NDArray[Any]], name: str, *, must_do: bool = False) -> None:
        """Fill the contexts in ``solved`` from their actions, if the states on the way are valid starts."""
        if not solved:
            return
        rows, actions = np.array(list(solved)), list(solved.values())
        starts = self.starts(rows, actions)
        contexts = {n: np.asarray(array)[rows] for n, array in self.wanted.contexts.items()}
        report = self.family.check_ladder(contexts, starts, by_hand=False)
        if must_do and not report.ok:
            raise Refusal(f"the policy ladder's part from the {name} is invalid: {report}")
        for warning in report.warnings:
            self.say(f"policy ladder, {name}: {warning}")
        valid = np.ones(len(rows), dtype=bool)
        valid[[problem.context for problem in report.problems]] = False
        for array_name, array in starts.items():
            self.ladder[array_name][rows[valid]] = array[valid]
        self.source_of[rows[valid]] = source
        self.steps[rows[valid]] = np.array([len(a) for a in actions])[valid]

    def starts(self, rows: NDArray[np.int64], actions: list[NDArray[Any]]) -> States:
        """The starts [rows, levels, ...] along those solutions; level 0 is the target start."""
        rungs = np.stack([self.family.rungs(len(a), self.wanted.n_levels) for a in actions])
        targets = {name: array[rows] for name, array in self.targets.items()}
        states = play_again(self.simulator, targets, actions, rungs)
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in states.items()}
        starts = {name: a.reshape(len(rows), -1, *a.shape[1:]) for name, a in self.family.as_starts(flat).items()}
        for name, array in starts.items():
            array[:, 0] = targets[name]
        return starts


def attempt_all(
    simulator: BatchSimulator, starts: Mapping[str, Array], policy: Policy, attempts: int = ATTEMPTS
) -> list[list[Array]]:
    """Play the policy from starts [n, ...] as one batch; attempt k draws from (KEY, k, step).

    Returns by start the actions [T, ...] of its successes, the shortest first; of equally short ones the earlier first.
    """
    n = len(next(iter(starts.values())))
    solutions: list[list[Array]] = [[] for _ in range(n)]
    for number in range(attempts):
        actions, length = _attempt(simulator, starts, policy, jax.random.fold_in(jax.random.key(KEY), number))
        for i in map(int, np.flatnonzero(length)):
            solutions[i].append(actions[: length[i], i].copy())
    return [sorted(successes, key=len) for successes in solutions]


_key_of_step = jax.jit(jax.random.fold_in)


def _attempt(
    simulator: BatchSimulator, starts: Mapping[str, Array], policy: Policy, key: Any
) -> tuple[Array, NDArray[np.int64]]:
    """The actions [T, n, ...] of one attempt per start, and the steps to its first success; 0 for none."""
    state = simulator.reset_to(starts)
    observation = simulator.observe(state)
    actions: list[Array] = []
    length = np.zeros(len(next(iter(starts.values()))), dtype=np.int64)
    running = np.ones(len(length), dtype=bool)
    while running.any() and len(actions) < simulator.max_steps:
        actions.append(np.asarray(policy(observation, _key_of_step(key, np.int32(len(actions))))))
        state, result = simulator.step(state, actions[-1])
        observation = result.observation
        success = np.asarray(result.success) & running
        length[success] = len(actions)
        running &= ~(success | np.asarray(result.terminated) | np.asarray(result.truncated))
    return np.stack(actions), length


def play_again(
    simulator: BatchSimulator, starts: Mapping[str, Array], actions: Sequence[Array], rungs: NDArray[np.int64]
) -> States:
    """The states [n, levels, ...] after ``rungs`` [n, levels] steps of each start's actions.

    Success must come with the last action and not before. Else restores are not exact: a ``RuntimeError``.
    """
    length = np.array([len(a) for a in actions])
    states = {name: np.repeat(np.asarray(array)[:, None], rungs.shape[1], axis=1) for name, array in starts.items()}
    state = simulator.reset_to(starts)
    for t in range(1, int(length.max()) + 1):
        state, result = simulator.step(state, np.stack([a[min(t, len(a)) - 1] for a in actions]))
        success = np.asarray(result.success)
        parted = (t <= length) & (success != (t == length))
        if parted.any():
            i = int(np.argmax(parted))
            raise RuntimeError(
                f"the success of start {i} at step {length[i]} is another episode when it is played again (step {t}): "
                "restores are not exact"
            )
        rows, levels = np.nonzero(rungs == t)
        if len(rows):
            now = simulator.get_states(state)
            for name, array in states.items():
                array[rows, levels] = now[name][rows]
    return states
