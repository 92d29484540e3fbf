"""Constants of the wrong type or size are refused in one sentence, before anything is built."""

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.bench.learners import LEARNERS, LIMITS, learner_constants, make_learner


@pytest.mark.parametrize(
    ("learner", "constants", "sentence"),
    [
        ("sac", {"random_action": ".3"}, "learner 'sac': 'random_action' is '.3', but must be a number"),
        ("sac", {"updates": 2.5}, "learner 'sac': 'updates' is 2.5, but must be a whole number"),
        ("sac", {"updates": True}, "'updates' is True, but must be a whole number"),
        ("sac", {"updates": 0}, "'updates' is 0, but must be at least 1"),
        ("sac", {"gamma": 1.5}, "'gamma' is 1.5, but must be from 0 to 1"),
        ("sac", {"gamma": float("nan")}, "'gamma' is nan, but must be from 0 to 1"),
        ("sac", {"hidden": [64, "a"]}, "'hidden' is \\[64, 'a'\\], but must be a list of numbers"),
        ("contrastive", {"energy": "cosine"}, "'energy' is 'cosine', but must be one of distance, product"),
        ("ppo", {"reward": 1}, "'reward' is 1, but must be one of success, cost"),
    ],
)
def test_a_learners_constant(learner, constants, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_learner(learner, constants)


@pytest.mark.parametrize(
    ("rule", "constants", "sentence"),
    [
        ("scout", {"n_min": "x"}, "rule 'scout': 'n_min' is 'x', but must be a whole number"),
        ("scout", {"tau": None}, "rule 'scout': 'tau' is None, but must be a number"),
        ("reverse", {"progress": 3}, "'progress' is 3, but must be a list of numbers or nothing"),
    ],
)
def test_a_rules_constant(rule, constants, sentence):
    with pytest.raises(ValueError, match=sentence):
        rules.make(rule, **constants)


def test_numpys_numbers_are_numbers():
    assert rules.make("scout", n_min=np.int64(5), tau=np.float64(0.25)).constants()["n_min"] == 5
    assert learner_constants(make_learner("sac", {"gamma": 1, "updates": np.int32(3)}))["updates"] == 3


@pytest.mark.parametrize("key", LEARNERS)
def test_every_default_is_within_its_limits(key):
    constants = learner_constants(make_learner(key, {}))
    assert make_learner(key, constants) == make_learner(key, {})
    numbers = {n for n, v in constants.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    assert numbers - {"target_entropy"} <= LIMITS.keys()
