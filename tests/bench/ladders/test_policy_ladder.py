"""Policy-derived ladders of the families: which source, which attempt, which states."""

import functools
from types import SimpleNamespace
from unittest import mock

import jax
import numpy as np
import pytest

from scout_rl.bench.ladders import policy as policy_source
from scout_rl.bench.ladders.build import Wanted
from scout_rl.bench.ladders.policy import TrainedRun, attempt_all, play_again
from scout_rl.ladders.sources import Sources
from scout_rl.ladders.validate import Problem, Report
from tests.bench.ladders.planted_policies import Case

GRIDS = "multiroom-small"  # the shortest episodes
KEYS = (GRIDS, "fetch-conflict-small", "pointmaze-medium-small", "metaworld-conflict-small")


@functools.cache
def case(key, n=4):
    return Case(key, n)


def run_of(rule, policy):
    return TrainedRun(policy, rule, {})


def build(planted, *runs, n_levels=5, family=None, say=lambda sentence: None):
    with mock.patch.object(Wanted, "family", family or planted.family):
        ladder, about = policy_source.build(Wanted(planted.setting, planted.contexts, n_levels, runs), say)
    return ladder, Sources.from_dict(about)


def same(a, b):
    return set(a) == set(b) and all(np.array_equal(a[n], b[n]) and a[n].dtype == b[n].dtype for n in a)


@pytest.mark.parametrize("key", KEYS)
def test_every_family_takes_the_sources_in_order(key):
    """Policies that play the solver's actions: whoever solved a context, its states are the solver ladder's."""
    planted = case(key)
    target = run_of("target", planted.plays({0}))
    scaffold = run_of("random", planted.plays({0, 1}, delays=(None, 0, None, 0, 0)))
    ladder, sources = build(planted, target, scaffold)
    assert sources.names == ("target-start policy", "scaffold policy", "solver")
    assert sources.source_of == (0, 1, 2, 2)
    assert sources.succeeded == ((5, 0, 0, 0), (3, 3, 0, 0))
    assert sources.steps == tuple(len(actions) for actions in planted.solutions)
    assert sources.bootstrap_fraction == 0.75
    assert sources.refused == ()
    assert same(ladder, planted.family.solver_ladder(planted.contexts, 5))
    assert all(np.array_equal(ladder[name][:, 0], array) for name, array in planted.targets.items())


def test_the_first_of_the_shortest_attempts_is_kept():
    planted = case(GRIDS, 6)
    delays = (7, 3, None, 3, 5)
    attempts = attempt_all(planted.family.batch_simulator(planted.setting), planted.targets, planted.plays({1}, delays))
    assert [len(successes) for successes in attempts] == [0, 4, 0, 0, 0, 0]
    assert [[*actions] for actions in attempts[1]] == [
        [6] * delay + planted.solutions[1].tolist() for delay in (3, 3, 5, 7)
    ]
    ladder, sources = build(planted, run_of("target", planted.plays({1}, delays)))
    assert sources.steps[1] == len(planted.solutions[1]) + 3
    # The rungs are those of the longer way: levels 0..4 at even shares of all steps but the last.
    way = planted.family.trajectory({name: array[1] for name, array in planted.targets.items()}).states
    steps = np.floor(np.linspace(0, 1, 5) * (sources.steps[1] - 1) + 0.5).astype(int)
    for name, array in way.items():
        assert np.array_equal(ladder[name][1], array[np.maximum(steps - 3, 0)])


@functools.cache
def noisy(key):
    """A case, and a stochastic policy on it: the scripted controller with noise that comes from the key."""
    planted = case(key)
    if key.startswith("fetch"):
        from scout_rl.bench.families.fetch.solver import act
    else:
        from scout_rl.bench.families.metaworld.script import act as script
        from scout_rl.bench.families.metaworld.simulator import stock_observation

        act = lambda observation: script(planted.targets["task"], stock_observation(observation))  # noqa: E731

    def policy(observation, key):
        noise = 0.5 * np.asarray(jax.random.normal(key, (planted.n, 4)))
        return np.clip(act(observation) + noise, -1, 1).astype(np.float32)

    return planted, policy


@pytest.mark.parametrize(
    "key", ["fetch-conflict-small", pytest.param("metaworld-conflict-small", marks=pytest.mark.slow)]
)
def test_a_stochastic_policy_gives_the_same_valid_ladder_each_time(key, monkeypatch):
    planted, policy = noisy(key)
    ladder, sources = build(planted, run_of("target", policy))
    assert 0 < sum(sources.succeeded[0]) < 5 * planted.n  # some attempts fail, some succeed
    assert all(np.array_equal(ladder[name][:, 0], array) for name, array in planted.targets.items())
    assert planted.family.check_ladder(planted.contexts, ladder, by_hand=False).ok
    simulator = planted.family.batch_simulator(planted.setting)
    again = attempt_all(simulator, planted.targets, policy)
    assert tuple(map(len, again)) == sources.succeeded[0]
    solved = [x for x in range(planted.n) if sources.source_of[x] == 0]
    assert solved
    for x in solved:
        (actions,) = (a for a in again[x] if len(a) == sources.steps[x])
        start = {name: array[[x]] for name, array in planted.targets.items()}
        met = play_again(simulator, start, [actions], planted.family.rungs(len(actions), 5)[None])
        assert np.array_equal(met["qpos"][0], ladder["qpos"][x])
    monkeypatch.setattr(policy_source, "KEY", 12)
    other = attempt_all(simulator, planted.targets, policy)
    assert not np.array_equal(again[solved[0]][0], other[solved[0]][0])


def test_any_number_of_levels():
    planted = case(GRIDS, 6)
    ladder, _ = build(planted, run_of("target", planted.plays({0})), n_levels=9)
    assert same(ladder, planted.family.solver_ladder(planted.contexts, 9))


class Strict:
    """A family whose validation finds fault with the parts that it is told to."""

    def __init__(self, family, faults):
        self.family, self.faults = family, list(faults)

    def __getattr__(self, name):
        return getattr(self.family, name)

    def check_ladder(self, contexts, ladder, *, by_hand):
        problems = [Problem(row, 2, 0, "does not hold at the start") for row in self.faults.pop(0)]
        return Report(int(np.prod(ladder["step_count"].shape)), tuple(problems), ("a warning",))


def test_states_that_are_no_valid_starts_go_to_the_next_source():
    planted, messages = case(GRIDS, 6), []
    policies = [run_of(rule, planted.plays({0, 2, 4})) for rule in ("target", "random")]
    # Rows of what is offered: the first gives contexts 0, 2, 4 and the second of them fails; its four other successes
    # fail too, as do the five of the second; the solver does the rest.
    ladder, sources = build(
        planted, *policies, family=Strict(planted.family, [[1], *[[0]] * 9, []]), say=messages.append
    )
    assert sources.source_of == (0, 2, 2, 2, 0, 2)
    assert sources.refused == ((0, 2), (1, 2))
    assert sources.bootstrap_fraction == 4 / 6
    assert same(ladder, planted.family.solver_ladder(planted.contexts, 5))
    names = (*["target-start policy"] * 5, *["scaffold policy"] * 5, "solver")
    assert messages[1:] == [f"policy ladder, {name}: a warning" for name in names]
    assert "in 2 cases no success had valid starts" in str(sources)
    delayed = run_of("target", planted.plays({1}, delays=(7, 3, None, 4, 5)))
    _, sources = build(planted, delayed, family=Strict(planted.family, [[0], [0], [], []]))
    assert sources.source_of[1] == 0
    assert sources.steps[1] == len(planted.solutions[1]) + 5  # those with 3 and with 4 idle steps were invalid
    policies = [run_of("target", planted.plays({0, 2, 4}))]
    with pytest.raises(ValueError, match=r"the policy ladder's part from the solver is invalid: 1 of 15 cells invalid"):
        build(planted, *policies, family=Strict(planted.family, [[], [0]]))


class Leaky:
    """A simulator of counters in which success comes later after each restore: it forgets part of its state."""

    max_steps = 9

    def __init__(self):
        self.restores = 0

    def reset_to(self, states):
        self.restores += 1
        return np.array(states["count"])

    def get_states(self, state):
        return {"count": state}

    observe = get_states

    def step(self, state, action):
        state = state + action
        success = state == 3 + self.restores
        never = np.zeros_like(success)
        return state, SimpleNamespace(observation={}, success=success, terminated=never, truncated=never)


def test_a_replay_that_is_another_episode_stops():
    starts, simulator = {"count": np.zeros(2, dtype=int)}, Leaky()
    attempts = attempt_all(simulator, starts, lambda observation, key: np.ones(2, dtype=int), attempts=1)
    assert [len(actions) for (actions,) in attempts] == [4, 4]
    with pytest.raises(RuntimeError, match=r"start 0 at step 4 is another episode when it is played again \(step 4\)"):
        play_again(simulator, starts, [actions for (actions,) in attempts], np.zeros((2, 1), dtype=np.int64))


def test_sources_as_json():
    sources = Sources(("a", "b", "solver"), (False, True, True), 5, ((5, 0, 2), (0, 1, 3)), (0, 1, 2), (7, 8, 9))
    assert Sources.from_dict(sources.as_dict()) == sources
    assert sources.as_dict()["bootstrap_fraction"] == 2 / 3
    assert sources.as_dict()["contexts"][1] == {"source": 1, "steps": 8, "succeeded": [0, 1]}
