"""Learners by the key that a setting names, with overrides checked by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from scout_rl.learners.learner import Learner
from scout_rl.learners.ppo import PPO

LEARNERS: dict[str, type] = {"ppo": PPO}


def make_learner(key: str, constants: dict[str, Any]) -> Learner:
    """The learner of that key with these constants changed; one that it does not have is refused."""
    if key not in LEARNERS:
        raise ValueError(f"there is no learner {key!r}; there are {', '.join(LEARNERS)}")
    known = [f.name for f in dataclasses.fields(LEARNERS[key])]
    for name in constants:
        if name not in known:
            raise ValueError(f"learner {key!r} has no constant {name!r}; it has {', '.join(known)}")
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in constants.items()}
    made: Learner = LEARNERS[key](**plain)
    return made


def learner_constants(learner: Learner) -> dict[str, Any]:
    """All of its constants as JSON values."""
    constants = dataclasses.asdict(learner)  # type: ignore[call-overload]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in constants.items()}
