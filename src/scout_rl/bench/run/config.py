"""The config of a run: with the versions, it determines every number in the run's records."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scout_rl import rules
from scout_rl.bench.ladders import require_ladder
from scout_rl.bench.learners import LEARNERS, learner_constants, make_learner
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.settings.presets import Preset, preset_constants
from scout_rl.bench.settings.settings import Setting
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.ladders.ladder import FRACTIONS, level_fractions
from scout_rl.rules.rule import SCHEDULES, Rule, require

FILLED = (*SCHEDULES, "progress")
"""Constants of rules whose defaults follow from the setting, the budget and the levels."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One (setting, rule, seed), and everything else that can be varied."""

    setting: str
    """Key of the setting."""
    rule: str = "scout"
    """Key of the allocation rule."""
    seed: int = 40
    """Seed of curriculum, learner and rollouts: 100-105 for evaluation, 40-59 for development."""
    algorithm: str = ""
    """Key of the learner; empty takes the setting's."""
    preset: Preset = "tuned"
    """Key of the set of learner constants."""
    ladder: str = "manual"
    """Key of the ladder's source: hand-built starts, or states along trajectories of the solver or of policies."""
    ladder_from: str = ""
    """The policy ladder's first source: folder of a run that was trained from the target start."""
    ladder_fallback: str = ""
    """Its second source: folder of a run that was trained with scaffolds."""
    levels: int = 5
    """Levels of the ladder."""
    windows: int = 0
    """Budget; 0 takes the setting's."""
    episodes: int = 0
    """Rollouts per window; 0 takes the setting's."""
    evaluate_every: int = 0
    """Windows between held-out evaluations; 0 takes the setting's."""
    checkpoint_every: int = 50
    """Windows between checkpoints; not part of the run's identity."""
    constants: dict[str, Any] = field(default_factory=dict)
    """The rule's constants; missing ones take the rule's defaults (schedules: the setting's share of the budget;
    progress: the ladder's)."""
    learner: dict[str, Any] = field(default_factory=dict)
    """The learner's constants; missing ones take the setting's."""

    def __post_init__(self) -> None:
        setting = setting_of(self.setting)
        require(self.seed >= 0, f"seed is {self.seed}, but cannot be negative")
        for name in ("windows", "episodes", "evaluate_every"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, but cannot be negative")
            object.__setattr__(self, name, getattr(self, name) or getattr(setting, name))
        require(self.checkpoint_every >= 1, f"checkpoint_every is {self.checkpoint_every}, but must be at least 1")
        object.__setattr__(self, "constants", self._whole_constants(setting))
        object.__setattr__(self, "algorithm", self.algorithm or setting.learner)
        # Refuse early a learner of steps on a simulator of goals, or the reverse; `make_learner` refuses unknown keys.
        fits = self.algorithm not in LEARNERS or LEARNERS[self.algorithm].plays == LEARNERS[setting.learner].plays
        require(fits, f"the learner {self.algorithm!r} does not fit {setting.key!r}, whose own is {setting.learner!r}")
        constants = {**preset_constants(setting, self.algorithm, self.preset), **self.learner}
        object.__setattr__(self, "learner", learner_constants(make_learner(self.algorithm, constants)))
        require_ladder(self.ladder, self.ladder_from, self.ladder_fallback)
        self.make_rule().init(1, self.levels, [0])  # refuse wrong constants early

    def _whole_constants(self, setting: Setting) -> dict[str, Any]:
        """All of the rule's constants, so that a later change of a default cannot change this run."""
        known = rules.make(self.rule).constants()
        for name in self.constants:
            require(name in known, f"rule {self.rule!r} has no constant {name!r}; it has {', '.join(known) or 'none'}")
        filled: dict[str, Any] = {name: setting.schedule(self.windows) for name in SCHEDULES if name in known}
        if "progress" in known and self.levels != len(FRACTIONS):  # with five, records hold None: the rule's default
            filled["progress"] = level_fractions(self.levels)
        return rules.make(self.rule, **{**filled, **self.constants}).constants()

    def make_rule(self) -> Rule:
        """The rule with its constants."""
        return rules.make(self.rule, **self.constants)

    def make_learner(self) -> Learner:
        """The learner with its constants."""
        return self._learner

    @cached_property
    def _learner(self) -> Learner:
        return make_learner(self.algorithm, self.learner)

    def as_dict(self) -> dict[str, Any]:
        """JSON values, for run.json."""
        return dataclasses.asdict(self)

    @property
    def identity(self) -> str:
        """Hash of everything that determines the run's numbers."""
        return identity(self.as_dict())


def identity(config: dict[str, Any]) -> str:
    """Hash of a config's dict without ``checkpoint_every``."""
    counted = {name: value for name, value in config.items() if name != "checkpoint_every"}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def difference(stored: dict[str, Any], current: dict[str, Any]) -> str | None:
    """Name the first field in which two configs differ, or None."""
    for name in sorted(stored.keys() | current.keys()):
        if name != "checkpoint_every" and stored.get(name) != current.get(name):
            return f"{name} is {stored.get(name)!r} there and {current.get(name)!r} here"
    return None
