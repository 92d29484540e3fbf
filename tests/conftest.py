"""Machines are shared: no test may fail because another process had the cores for a while."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_configure(config):
    """All processes share ladders and what JAX compiles; the next session finds both in `.pytest_cache`."""
    if not hasattr(config, "workerinput"):  # workers and the processes of tests get it from this one
        cache = getattr(config, "cache", None)
        os.environ.setdefault("SCOUT_CACHE", str(cache.mkdir("scout") if cache else tempfile.mkdtemp()))
        os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.join(os.environ["SCOUT_CACHE"], "xla")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """The run `tiny()`, trained once for all tests that read it or copy it."""
    from scout_rl.bench.run.train import train
    from tests.bench.run.run_helpers import tiny

    folder = tmp_path_factory.mktemp("tiny") / "run"
    train(tiny(), folder, say=lambda sentence: None)
    return folder
