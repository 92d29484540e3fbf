"""Every learner fulfils the one contract: callers ask what it plays, never for its type."""

import inspect

import jax
import numpy as np
import pytest

from scout_rl.bench.learners import LEARNERS, make_learner
from scout_rl.bench.learners.episodes import GoalSpace
from scout_rl.bench.learners.learner import Learner, State, StepLearner

SPACE = GoalSpace(observation=5, goal=3, action=2, horizon=6)
ROWS = {"steps": np.ones((4, 7, 7, 3), np.uint8), "goals": np.zeros((4, 8), np.float32)}


@pytest.mark.parametrize("key", LEARNERS)
def test_it_has_every_function_of_the_contract(key):
    learner = make_learner(key, {})
    contract = {"steps": StepLearner, "goals": Learner}[learner.plays]
    for name, function in inspect.getmembers(contract, inspect.isfunction):
        if not name.startswith("_"):
            wanted = list(inspect.signature(function).parameters)[1:]
            assert list(inspect.signature(getattr(learner, name)).parameters) == wanted, name


@pytest.mark.parametrize("key", LEARNERS)
def test_a_fresh_learner_acts(key):
    learner = make_learner(key, {})
    state = jax.jit(lambda key: learner.init(key, SPACE, 4))(jax.random.key(0))
    assert isinstance(state, State)
    assert (state.replay is None) == (learner.plays == "steps")
    rows = ROWS[learner.plays]
    for act in (learner.decide, learner.sample):
        actions = np.asarray(jax.jit(act)(learner.policy(state), rows, jax.random.key(1)))
        assert len(actions) == 4
        assert np.isfinite(actions).all()


def test_no_caller_asks_for_a_learners_type():
    import scout_rl.bench.rollouts.evaluate as evaluate
    import scout_rl.bench.run.learner_state as learner_state
    import scout_rl.bench.run.parts as parts
    import scout_rl.bench.run.trained as trained
    import scout_rl.bench.run.window as window

    for module in (evaluate, learner_state, parts, trained, window):
        assert "isinstance(learner" not in inspect.getsource(module)
