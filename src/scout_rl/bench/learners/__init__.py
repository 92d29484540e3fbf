"""Learners by the key that a setting names, with overrides checked by name."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from scout_rl.bench.learners.contrastive import Contrastive
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.learners.ppo import PPO
from scout_rl.bench.learners.sac import SAC
from scout_rl.files.refusal import Refusal
from scout_rl.rules.field_types import require_types

LEARNERS: dict[str, type[Any]] = {"ppo": PPO, "sac": SAC, "contrastive": Contrastive}
_COUNT, _SHARE, _WEIGHT = (1, math.inf), (0, 1), (0, math.inf)
LIMITS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("batch", "updates", "capacity", "random_hold", "epochs", "minibatch", "representation"), _COUNT),
    **dict.fromkeys(("critics", "subset", "n_actions"), _COUNT),
    **dict.fromkeys(("gamma", "lam", "tau", "random_action"), _SHARE),
    **dict.fromkeys(("learning_rate", "alpha", "action_noise", "clip", "clip_inputs", "max_grad_norm"), _WEIGHT),
    **dict.fromkeys(("entropy", "value", "penalty", "warmup", "her", "normalise_until"), _WEIGHT),
}
"""Smallest and largest allowed value of a constant."""


def make_learner(key: str, constants: dict[str, Any]) -> Learner:
    """The learner of that key with these constants changed; an unknown constant is refused."""
    if key not in LEARNERS:
        raise Refusal(f"there is no learner {key!r}; there are {', '.join(LEARNERS)}")
    known = [f.name for f in dataclasses.fields(LEARNERS[key])]
    for name in constants:
        if name not in known:
            raise Refusal(f"learner {key!r} has no constant {name!r}; it has {', '.join(known)}")
    require_types(LEARNERS[key], constants, f"learner {key!r}")
    for name, value in constants.items():
        low, high = LIMITS.get(name, (-math.inf, math.inf))
        if name in LIMITS and not low <= value <= high:
            limits = f"at least {low}" if high == math.inf else f"from {low} to {high}"
            raise Refusal(f"learner {key!r}: {name!r} is {value!r}, but must be {limits}")
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in constants.items()}
    learner: Learner = LEARNERS[key](**plain)
    return learner


def learner_constants(learner: Learner) -> dict[str, Any]:
    """All of its constants as JSON values."""
    constants = dataclasses.asdict(learner)  # type: ignore[call-overload]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in constants.items()}
