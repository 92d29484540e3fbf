"""The banks for the learner model. Each has constants that show one mechanism.

``needed`` is the number of level-l rollouts that take a stage from its first skill to 0.98 while later stages are
solved. With learning from success alone, skill follows a logistic curve in the number of rollouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scout_rl.simulate.model import Floats, Learner

SOLVED_SKILL = 0.98


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A bank with a learner, a budget, and labels for evaluation and for the oracle rule."""

    key: str
    about: str
    learner: Learner
    windows: int
    """Budget."""
    group_names: tuple[str, ...]
    evaluation_group: NDArray[np.int64]
    """``[contexts]``: groups of the metrics; -1: not evaluated."""
    oracle_group: NDArray[np.int64]
    """``[contexts]``: groups that ``group-frontier`` sees."""
    rollouts: int = 16
    """Rollouts per window."""
    lose: tuple[int, int] | None = None
    """A window and a stage: before that window the learner loses what it learned of the stage."""
    seeds: int = 20
    """Seeds that a comparison plays unless asked for others: few where a run is long."""

    @property
    def n_contexts(self) -> int:
        """Contexts in the bank."""
        return len(self.learner.skill)

    @property
    def n_levels(self) -> int:
        """Levels of the ladder."""
        return int(self.learner.skill.shape[1])


def _rate(first: Floats, needed: Floats) -> Floats:
    """The rate at which ``needed`` rollouts take a stage from ``first`` to 0.98, on a logistic curve."""
    return (_logit(np.full_like(first, SOLVED_SKILL)) - _logit(first)) / needed


def _logit(p: Floats) -> Floats:
    return np.log(p / (1 - p))


def _contexts(n: int, first: list[float], needed: list[float], seed: int) -> tuple[Floats, Floats]:
    """Return skill and rate of ``n`` contexts, whose pace varies by about a quarter."""
    pace = np.exp(np.random.default_rng(seed).normal(0, 0.25, (n, 1)))
    skill = np.tile(np.asarray(first, float), (n, 1))
    return skill, _rate(skill, np.tile(np.asarray(needed, float), (n, 1)) * pace)


def _joined(*parts: tuple[Floats, Floats]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    kind = np.repeat(np.arange(len(parts)), [len(skill) for skill, _ in parts])
    return np.concatenate([s for s, _ in parts]), np.concatenate([r for _, r in parts]), kind


# First skill and rollouts needed, per stage. Only the target start includes stage 0, the first entry.
FIRST = [0.05, 0.05, 0.05, 0.05, 0.3]
ALIKE = FIRST, [40.0] * 5
QUICK = FIRST, [15.0] * 5
EASY = FIRST, [500.0, 15.0, 15.0, 15.0, 15.0]
"""Little assisted practice is enough; the target start itself takes long."""
HARD = FIRST, [15.0, 190.0, 190.0, 190.0, 190.0]
"""Every assisted stage takes long; the target start is then quick."""


def homogeneous() -> Scenario:
    """Contexts that learn at similar rates: assistance matters, allocation does not."""
    skill, rate, kind = _joined(_contexts(40, *ALIKE, seed=1))
    return Scenario(
        key="homogeneous",
        about="40 contexts of one kind: any pace that keeps assistance for a while should do",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1000,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
    )


def conflict() -> Scenario:
    """Two groups that need assistance removed at different rates, with nothing between them.

    Drawn uniformly, every context gets 640 rollouts. The hard kind needs about 760 assisted rollouts, and the easy kind
    500 from the target start, so no shared schedule has room for both: see `annealing_sweep`.
    """
    skill, rate, kind = _joined(_contexts(20, *EASY, seed=2), _contexts(20, *HARD, seed=3))
    return Scenario(
        key="conflict",
        about="20 easy contexts that need the target start, 20 hard ones that need assistance, one budget",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1600,
        group_names=("easy", "hard"),
        evaluation_group=kind,
        oracle_group=kind,
    )


def within_group() -> Scenario:
    """One label for two bands of contexts: a pooled frontier cannot tell them apart."""
    skill, rate, kind = _joined(_contexts(28, *QUICK, seed=4), _contexts(12, *HARD, seed=5))
    return Scenario(
        key="within-group",
        about="28 low-band and 12 high-band contexts under one label; the low band dominates pooled statistics",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1600,
        group_names=("low band", "high band"),
        evaluation_group=kind,
        oracle_group=np.zeros(40, np.int64),
    )


def hopeless(never: int = 1) -> Scenario:
    """One context (or ``never`` of them) that cannot be learned: does it delay the others?"""
    skill, rate, kind = _joined(_contexts(39, *ALIKE, seed=6), _contexts(never, [0.01] * 5, [1e9] * 5, seed=7))
    return Scenario(
        key="hopeless",
        about="39 contexts of one kind and one that never succeeds; only the 39 are evaluated",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1000,
        group_names=("solvable",),
        evaluation_group=np.where(kind == 0, 0, -1),
        oracle_group=np.zeros(39 + never, np.int64),
    )


def large_bank() -> Scenario:
    """Many contexts and 16 rollouts per window: evidence per context comes slowly."""
    skill, rate, kind = _joined(_contexts(300, *ALIKE, seed=8))
    return Scenario(
        key="large-bank",
        about="300 contexts, 16 rollouts per window: a context is seen every 19 windows",
        learner=Learner(skill=skill, rate=rate * 10, kind=kind),
        windows=1200,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
    )


def which_level() -> Scenario:
    """Two groups that are equally hard on the whole, but at different levels."""
    first = _contexts(20, FIRST, [300.0, 15.0, 15.0, 15.0, 15.0], seed=2)
    third = _contexts(20, FIRST, [15.0, 15.0, 300.0, 15.0, 15.0], seed=3)
    skill, rate, kind = _joined(first, third)
    return Scenario(
        key="which-level",
        about="20 contexts where stage 0 takes long, 20 where stage 2 does: as hard, but at other levels",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1200,
        group_names=("stage 0", "stage 2"),
        evaluation_group=kind,
        oracle_group=kind,
    )


def huge_bank() -> Scenario:
    """Far more contexts than rollouts can visit: nearly all that is known of a context comes from others."""
    skill, rate, kind = _joined(_contexts(100_000, *ALIKE, seed=9))
    return Scenario(
        key="huge-bank",
        about="100,000 contexts, 256 rollouts per window: most contexts are never seen",
        learner=Learner(skill=skill, rate=rate * 640, kind=kind),
        windows=250,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
        rollouts=256,
        seeds=2,
    )


def capped_contexts(cap: float = 0.5) -> Scenario:
    """A fifth of the contexts never succeeds more often than ``cap``: their outcomes stay uncertain for ever."""
    skill, rate, kind = _joined(_contexts(40, *ALIKE, seed=1))
    capped = np.arange(40) % 5 == 0
    return Scenario(
        key="capped-contexts",
        about=f"40 contexts of one kind; 8 succeed at most {cap:g} of the time; only the other 32 are evaluated",
        learner=Learner(skill=skill, rate=rate, kind=kind, cap=np.tile(np.where(capped, cap, 1.0)[:, None], (1, 5))),
        windows=1000,
        group_names=("uncapped",),
        evaluation_group=np.where(capped, -1, 0),
        oracle_group=kind,
    )


def capped_level(cap: float = 0.5) -> Scenario:
    """One level in the middle of the ladder never succeeds more often than ``cap``: its outcomes stay uncertain."""
    skill, rate, kind = _joined(_contexts(40, *ALIKE, seed=1))
    return Scenario(
        key="capped-level",
        about=f"40 contexts of one kind; a rollout from level 2 succeeds at most {cap:g} of the time",
        learner=Learner(skill=skill, rate=rate, kind=kind, cap=np.tile([1.0, 1.0, cap, 1.0, 1.0], (40, 1))),
        windows=1000,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
    )


def gap() -> Scenario:
    """A ladder with a gap: level 1 succeeds by chance, level 0 next to never, and what rests is forgotten.

    Nothing but success at level 0 teaches stage 0, and that needs a stage 1 that is kept in practice. The target start
    alone solves it in few seeds.
    """
    skill, rate, kind = _joined(_contexts(40, [0.001, 0.1, 0.9, 0.95, 0.98], [60.0, 20.0, 20.0, 20.0, 20.0], seed=2))
    return Scenario(
        key="gap",
        about="40 contexts; level 1 succeeds by chance, level 0 next to never; level 1 must stay in practice",
        learner=Learner(skill=skill, rate=rate, kind=kind, transfer=0.0, hindsight=0.0, forgetting=2e-3),
        windows=1200,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
    )


def lost_skill() -> Scenario:
    """The learner loses one stage in the middle of the budget: does the rule go back to where it is learned?"""
    skill, rate, kind = _joined(_contexts(40, *ALIKE, seed=1))
    return Scenario(
        key="lost-skill",
        about="40 contexts of one kind; after half of the budget the learner loses stage 1",
        learner=Learner(skill=skill, rate=rate, kind=kind),
        windows=1000,
        group_names=("all",),
        evaluation_group=kind,
        oracle_group=kind,
        lose=(500, 1),
    )


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "homogeneous": homogeneous,
    "conflict": conflict,
    "within-group": within_group,
    "hopeless": hopeless,
    "large-bank": large_bank,
    "which-level": which_level,
    "huge-bank": huge_bank,
    "capped-contexts": capped_contexts,
    "capped-level": capped_level,
    "gap": gap,
    "lost-skill": lost_skill,
}
LONG = ("huge-bank",)
"""Played only where it is named: minutes, not seconds."""
