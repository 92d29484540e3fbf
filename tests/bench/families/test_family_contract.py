"""The conformance checks over the registry: a new family or setting is tested the moment it is registered."""

import dataclasses

import numpy as np
import pytest

from scout_rl.bench.families import FAMILIES, family
from scout_rl.bench.settings.settings import SETTINGS
from tests.bench.families.conformance import check_family

FILES = ("contexts", "simulator", "operator", "codec", "solver")


@pytest.mark.parametrize("key", FAMILIES)
def test_every_family_has_the_five_files(key):
    module = type(family(key)).__module__
    for name in FILES:
        __import__(f"{module}.{name}")
    assert family(key).key == key


@pytest.mark.parametrize("key", ["doorkey-small", "multiroom-small", "fetch-conflict-small", "pointmaze-medium-small"])
def test_families_conform(key):
    assert check_family(family(SETTINGS[key].family), SETTINGS[key]) == []


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_families_conform_on_every_context(key):
    setting = SETTINGS[key]
    assert check_family(family(setting.family), setting, n_contexts=setting.n_train) == []


class Broken:
    """A family with one function replaced."""

    def __init__(self, **replaced):
        self.replaced = replaced

    def __getattr__(self, name):
        return self.replaced.get(name) or getattr(family("minigrid"), name)


def upside_down(contexts, n_levels):
    ladder = family("minigrid").starts(contexts, n_levels)
    return {name: array[:, [0, 4, 3, 2, 1]] for name, array in ladder.items()}


def not_from_the_target(contexts, n_levels):
    ladder = family("minigrid").starts(contexts, n_levels)
    return {name: array[:, [1, 1, 2, 3, 4]] for name, array in ladder.items()}


def one_step_short(state):
    states, actions = family("minigrid").trajectory(state)
    return type(family("minigrid").trajectory(state))(states, np.append(actions[:-1], 6))


def another_seed(setting):
    another_seed.calls += 1
    return family("minigrid").sample_bank(dataclasses.replace(setting, bank_seed=another_seed.calls))


another_seed.calls = 0


def with_the_success(n_steps, n_levels):
    return np.linspace(0, n_steps, n_levels).astype(int)


def one_step_later(states):
    return {**states, "step_count": states["step_count"] + 1}


@pytest.mark.parametrize(
    ("replaced", "fault"),
    [
        ({"rungs": with_the_success}, "rungs: those of 1 steps are [0, 0, 0, 0, 1]"),
        ({"as_starts": one_step_later}, "as_starts: changes a target start"),
        ({"starts": upside_down}, "more steps left at level"),
        ({"starts": not_from_the_target}, "at level 0 is not the target start"),
        ({"trajectory": one_step_short}, "does not succeed"),
        ({"sample_bank": another_seed}, "two samplings differ"),
    ],
)
def test_the_checks_find_faults(replaced, fault):
    faults = check_family(Broken(**replaced), SETTINGS["doorkey-small"], n_contexts=4)
    assert any(fault in sentence for sentence in faults), faults
