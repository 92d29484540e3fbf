"""Bad contexts, foreign states and wrong banks: one clear sentence each."""

import dataclasses

import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.settings.bank import require_hash
from scout_rl.bench.settings.settings import SETTINGS
from tests.bench.families.goal_families import flat, simulator_of


def changed(contexts, name, value):
    return {**contexts, name: np.concatenate([contexts[name][:1], [value]])} | {
        other: array[:2] for other, array in contexts.items() if other != name
    }


@pytest.mark.parametrize(
    ("key", "name", "value", "sentence"),
    [
        ("fetch-air", "object_xy", [1.0, 0.75], r"context 1: the object at \(1.000, 0.750\) is outside"),
        ("fetch-air", "goal", [1.34, 0.75, 1.2], r"context 1: the goal at \(1.340, 0.750, 1.200\) is outside"),
        ("fetch-air", "goal", [1.34, np.nan, 0.5], r"context 1: the goal at .* is outside the workspace"),
        ("pointmaze-medium", "start", [-3.9, 0.0], r"context 1: the start at \[-3.9, 0.0\] is in a wall or outside"),
        ("pointmaze-medium", "goal", [40.0, 0.0], r"context 1: the goal at \[40.0, 0.0\] is in a wall or outside"),
    ],
)
def test_contexts_outside_the_workspace(bank_of, key, name, value, sentence):
    contexts = changed(bank_of(key).train.contexts, name, value)
    bench_family = family(SETTINGS[key].family)
    for build in (
        bench_family.target_starts,
        lambda c: bench_family.starts(c, 5),
        lambda c: bench_family.solver_ladder(c, 5),
    ):
        with pytest.raises(ValueError, match=sentence):
            build(contexts)


def test_contexts_of_two_mazes(bank_of):
    contexts = changed(bank_of("pointmaze-medium").train.contexts, "maze", 1)
    with pytest.raises(ValueError, match=r"contexts of one maze are needed, not of \[0, 1\]"):
        family("pointmaze").target_starts(contexts)


@pytest.mark.parametrize("key", ["fetch-conflict", "pointmaze-medium"])
def test_states_that_belong_elsewhere(ladder_of, key):
    starts, simulator = flat(ladder_of(key)[1]), simulator_of(key)
    older = {**starts, "mujoco_version": starts["mujoco_version"] - np.array([0, 1, 0], dtype=np.int32)}
    with pytest.raises(ValueError, match=r"written with MuJoCo 3.2.0, and MuJoCo 3.3.0 is installed"):
        simulator.reset_to(older)
    foreign = {**starts, "model_fingerprint": starts["model_fingerprint"] ^ 1}
    with pytest.raises(ValueError, match="belongs to another MuJoCo model"):
        simulator.reset_to(foreign)
    with pytest.raises(ValueError, match="the state lacks the array 'goal'"):
        simulator.reset_to({name: array for name, array in starts.items() if name != "goal"})
    with pytest.raises(ValueError, match="the state lacks the arrays qpos, ctrl"):
        simulator.reset_to({name: array for name, array in starts.items() if name not in ("qpos", "ctrl")})
    with pytest.raises(ValueError, match=r"array 'qpos' of 50 states has shape \(50, 1\)"):
        simulator.reset_to({**starts, "qpos": starts["qpos"][:, :1]})
    state = simulator.reset_to(starts)
    with pytest.raises(ValueError, match=r"actions have shape \(3, 1\), and not"):
        simulator.step(state, np.zeros((3, 1)))


def test_a_state_of_another_maze(ladder_of):
    starts = flat(ladder_of("pointmaze-medium")[1])
    with pytest.raises(ValueError, match="belongs to another MuJoCo model"):
        simulator_of("pointmaze-large").reset_to(starts)
    with pytest.raises(ValueError, match="another MuJoCo model than that of any maze"):
        family("pointmaze").trajectory({n: a[0] for n, a in starts.items()} | {"model_fingerprint": np.zeros(16)})


def test_a_bank_with_another_hash(bank_of, monkeypatch):
    with pytest.raises(ValueError, match="not the bank that the results refer to"):
        require_hash(bank_of("fetch-air-small"), "0" * 64, "somewhere")
    reseeded = dataclasses.replace(SETTINGS["fetch-air-small"], bank_seed=1)
    with pytest.raises(ValueError, match="setting 'fetch-air-small' has content hash"):
        load_bank(reseeded)


def test_a_context_that_no_solution_reaches(ladder_of):
    starts = flat(ladder_of("fetch-conflict")[1])
    unreachable = {name: array[:2].copy() for name, array in starts.items()}
    unreachable["goal"][1] += [0, 0, 3.0]
    with pytest.raises(ValueError, match="the solver does not solve 1 of 2 states in 50 steps; the first is state 1"):
        family("fetch").solutions(unreachable)
