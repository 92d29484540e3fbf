import functools

import pytest

from scout_rl.families import family, load_bank
from scout_rl.settings import SETTINGS


@pytest.fixture(scope="session")
def bank_of():
    """Banks by the setting's key, each sampled once."""
    return functools.cache(lambda key: load_bank(SETTINGS[key]))


@pytest.fixture(scope="session")
def minigrid():
    return family("minigrid")
