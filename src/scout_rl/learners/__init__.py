"""Learners by the key that a setting names, with overrides checked by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from scout_rl.learners.contrastive import Contrastive
from scout_rl.learners.learner import Learner
from scout_rl.learners.off_policy import OffPolicy
from scout_rl.learners.ppo import PPO
from scout_rl.learners.sac import SAC

LEARNERS: dict[str, type] = {"ppo": PPO, "sac": SAC, "contrastive": Contrastive}


def make_learner(key: str, constants: dict[str, Any]) -> Learner | OffPolicy:
    """The learner of that key with these constants changed; one that it does not have is refused."""
    if key not in LEARNERS:
        raise ValueError(f"there is no learner {key!r}; there are {', '.join(LEARNERS)}")
    known = [f.name for f in dataclasses.fields(LEARNERS[key])]
    for name in constants:
        if name not in known:
            raise ValueError(f"learner {key!r} has no constant {name!r}; it has {', '.join(known)}")
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in constants.items()}
    made: Learner | OffPolicy = LEARNERS[key](**plain)
    return made


def learner_constants(learner: Learner | OffPolicy) -> dict[str, Any]:
    """All of its constants as JSON values."""
    constants = dataclasses.asdict(learner)  # type: ignore[arg-type]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in constants.items()}
