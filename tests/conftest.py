"""Machines are shared: no test may fail because another process had the cores for a while."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """The run `tiny()`, trained once for all tests that read it or copy it, with one compilation for their children."""
    from scout_rl.bench.run.train import train
    from scout_rl.files.cache import use_compilation_cache
    from tests.bench.run.run_helpers import tiny

    os.environ.setdefault("SCOUT_CACHE", str(tmp_path_factory.getbasetemp().parent / "scout-cache"))
    use_compilation_cache()
    folder = tmp_path_factory.mktemp("tiny") / "run"
    train(tiny(), folder, say=lambda sentence: None)
    return folder
