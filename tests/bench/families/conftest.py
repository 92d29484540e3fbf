import functools

import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.settings.settings import SETTINGS


@pytest.fixture(scope="session")
def bank_of():
    """Banks by the setting's key, each sampled once."""
    return functools.cache(lambda key: load_bank(SETTINGS[key]))


@pytest.fixture(scope="session")
def minigrid():
    return family("minigrid")


@pytest.fixture(scope="session")
def ladder_of(bank_of):
    """The contexts and the ladder of the first train contexts of a MuJoCo bank, half of them from its end, where a
    second group is; each built once."""

    @functools.cache
    def build(key, source="manual", n_contexts=10, n_levels=5):
        every = bank_of(key).train.contexts
        n = len(next(iter(every.values())))
        rows = [*range(n_contexts // 2), *range(n - (n_contexts + 1) // 2, n)]
        contexts = {name: array[rows] for name, array in every.items()}
        bench_family = family(SETTINGS[key].family)
        return contexts, (bench_family.starts if source == "manual" else bench_family.solver_ladder)(contexts, n_levels)

    return build
