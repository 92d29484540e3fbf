"""What a run is: one frozen value that, with the versions, fixes every number the run leaves behind."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from scout_rl import rules
from scout_rl.bench.ladders import require_ladder
from scout_rl.bench.learners import LEARNERS, learner_constants, make_learner
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.settings.presets import Preset, preset_constants
from scout_rl.bench.settings.settings import Setting, setting
from scout_rl.ladders.ladder import FRACTIONS, level_fractions
from scout_rl.rules.rule import SCHEDULES, Rule, require

FILLED = (*SCHEDULES, "progress")
"""Constants of rules that follow from the setting, the budget and the levels, where they are not given."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One (setting, rule, seed), and everything that may be varied about it."""

    setting: str
    """Key of the setting."""
    rule: str = "scout"
    """Key of the allocation rule."""
    seed: int = 40
    """Of the curriculum, the learner and the rollouts. 100-105 are evaluation seeds, 40-59 for development."""
    algorithm: str = ""
    """Key of the learner; none takes the setting's own."""
    preset: Preset = "tuned"
    """Whose learner constants."""
    ladder: str = "manual"
    """Key of the ladder's source: hand-built starts, or states along the ways of the solver or of trained policies."""
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
    """Windows between checkpoints; no part of the run's identity."""
    constants: dict[str, Any] = field(default_factory=dict)
    """The rule's constants; those not given take the rule's own (schedules: the setting's share of the budget;
    progress: the ladder's)."""
    learner: dict[str, Any] = field(default_factory=dict)
    """The learner's constants; those not given take the setting's."""

    def __post_init__(self) -> None:
        chosen = setting(self.setting)
        require(self.seed >= 0, f"seed is {self.seed}, but cannot be negative")
        for name in ("windows", "episodes", "evaluate_every"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, but cannot be negative")
            object.__setattr__(self, name, getattr(self, name) or getattr(chosen, name))
        require(self.checkpoint_every >= 1, f"checkpoint_every is {self.checkpoint_every}, but must be at least 1")
        object.__setattr__(self, "constants", self._whole_constants(chosen))
        object.__setattr__(self, "algorithm", self.algorithm or chosen.learner)
        _require_fit(chosen, self.algorithm)
        constants = {**preset_constants(chosen, self.algorithm, self.preset), **self.learner}
        learner = make_learner(self.algorithm, constants)
        object.__setattr__(self, "learner", learner_constants(learner))
        object.__setattr__(self, "_learner", learner)  # built here once; no field, so no part of the identity
        require_ladder(self.ladder, self.ladder_from, self.ladder_fallback)
        self.make_rule().init(1, self.levels, [0])  # refuse what does not fit before anything is built

    def _whole_constants(self, chosen: Setting) -> dict[str, Any]:
        """All of the rule's constants, so that a later change of a default cannot change this run."""
        known = rules.make(self.rule).constants()
        for name in self.constants:
            require(name in known, f"rule {self.rule!r} has no constant {name!r}; it has {', '.join(known) or 'none'}")
        filled: dict[str, Any] = {name: chosen.schedule(self.windows) for name in SCHEDULES if name in known}
        if "progress" in known and self.levels != len(FRACTIONS):  # of five the rule knows it, and records hold None
            filled["progress"] = level_fractions(self.levels)
        return rules.make(self.rule, **{**filled, **self.constants}).constants()

    def make_rule(self) -> Rule:
        """The rule with its constants."""
        return rules.make(self.rule, **self.constants)

    def make_learner(self) -> Learner:
        """The learner with its constants."""
        learner: Learner = self._learner  # type: ignore[attr-defined]
        return learner

    def as_dict(self) -> dict[str, Any]:
        """JSON values, for config.json."""
        return dataclasses.asdict(self)

    @property
    def identity(self) -> str:
        """Hash of all that determines the run's numbers."""
        return identity(self.as_dict())


def _require_fit(chosen: Setting, algorithm: str) -> None:
    """A learner of steps on a simulator of goals would fail late; an unknown learner is refused by its own name."""
    fits = algorithm not in LEARNERS or LEARNERS[algorithm].plays == LEARNERS[chosen.learner].plays
    require(fits, f"the learner {algorithm!r} does not fit {chosen.key!r}, whose own is {chosen.learner!r}")


def identity(config: dict[str, Any]) -> str:
    """The hash of a config's dict; how often it is saved does not count."""
    counted = {name: value for name, value in config.items() if name != "checkpoint_every"}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def difference(there: dict[str, Any], here: dict[str, Any]) -> str | None:
    """Name the first field in which two configs differ, or None."""
    for name in sorted(there.keys() | here.keys()):
        if name != "checkpoint_every" and there.get(name) != here.get(name):
            return f"{name} is {there.get(name)!r} there and {here.get(name)!r} here"
    return None
