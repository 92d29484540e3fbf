"""Machines are shared: no test may fail because another process had the cores for a while."""

import contextlib
import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# `make test` has the same examples every time, so that one commit gives one answer; `make test-all` draws new ones.
for profile, derandomize in (("same", True), ("new", False)):
    patience = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile(profile, derandomize=derandomize, **patience)
settings.load_profile("same")


def pytest_configure(config):
    """All processes share ladders and what JAX compiles; the next session finds both in `.pytest_cache`."""
    if not hasattr(config, "workerinput"):  # workers and the processes of tests get it from this one
        cache = getattr(config, "cache", None)
        os.environ.setdefault("SCOUT_CACHE", str(cache.mkdir("scout") if cache else tempfile.mkdtemp()))
        os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.join(os.environ["SCOUT_CACHE"], "xla")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        # The default, spelled as workers of several threads spell it: flags are a part of the cache's key.
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")


@pytest.fixture(scope="session")
def memo_of_parts():
    """What was compiled for runs on pure simulators, by all that it depends on."""
    return {}


@pytest.fixture(scope="module")
def shared_parts(memo_of_parts):
    """Runs of a module that are trained in this process share their compiled functions: a trace takes seconds.

    They are pure, and a run keeps its state elsewhere; runs in processes of their own compile theirs. Simulators on the
    host have a state, so each run gets its own.
    """
    with sharing(memo_of_parts):
        yield


@contextlib.contextmanager
def sharing(memo):
    from scout_rl.bench.run import batch, train, trained

    def shared(make):
        def parts(config, setting, bank):
            learner = config.make_learner()
            if learner.plays != "steps":
                return make(config, setting, bank)
            key = make, setting, bank.sha256, learner, config.episodes
            if key not in memo:
                memo[key] = make(config, setting, bank)
            return memo[key]

        return parts

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((train, "make_parts"), (trained, "make_parts"), (batch, "make_batch_parts")):
            patch.setattr(module, name, shared(getattr(module, name)))
        yield


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory, memo_of_parts):
    """The run `tiny()`, trained once for all tests that read it or copy it."""
    from scout_rl.bench.run.train import train
    from tests.bench.run.run_helpers import tiny

    folder = tmp_path_factory.mktemp("tiny") / "run"
    with sharing(memo_of_parts):
        train(tiny(), folder, say=lambda sentence: None)
    return folder
