"""The learner model: a chain of stages per context, learned from success alone.

A rollout from level l must perform the stages l..L. Stage j of context x succeeds with probability ``skill[x, j]``, so
the rollout succeeds with the product of the skills from l on. The reward is sparse: a success teaches every stage that
it went through, by the context's rate at that stage, and a failure hardly anything. Practice spreads to neighbouring
stages and to contexts of the same kind, and skill is slowly forgotten. This shows what a reset curriculum is about: the
target start alone never succeeds, assistance removed too early stops learning, and assistance kept too long is wasted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scout_rl.rules.cells import Cells

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Learner:
    """Skill and rate of the contexts, ``[contexts, levels]``, and how practice spreads and fades."""

    skill: Floats
    """Skill of every stage before any practice, in 0..1."""
    rate: Floats
    """How much one success teaches a stage: ``1 - skill`` shrinks by ``exp(-rate)``."""
    kind: NDArray[np.int64]
    """``[contexts]``: contexts of one kind teach each other."""
    transfer: float = 0.05
    """Share of a stage's practice that also reaches each neighbouring stage."""
    sharing: float = 0.5
    """Share of a context's learning that comes from the average practice of its kind."""
    hindsight: float = 0.005
    """What a failed rollout teaches its first stage, relative to a success."""
    forgetting: float = 2e-4
    """Share of the learned skill that is lost per window."""
    cap: Floats | None = None
    """``[contexts, levels]``: a rollout that would succeed counts with this chance only; None: always."""


def init_skill(learner: Learner, n_seeds: int) -> Floats:
    """Return the untrained learner of every seed, ``[seeds, contexts, levels]``."""
    return np.repeat(learner.skill[None], n_seeds, axis=0)


def success_chance(skill: Floats, cap: Floats | None = None) -> Floats:
    """Return the success probability of every cell: the product of the skills from its level on, times its cap."""
    chance = np.asarray(np.cumprod(skill[..., ::-1], axis=-1)[..., ::-1], np.float64)
    return chance if cap is None else chance * cap


def lose_stage(learner: Learner, skill: Floats, stage: int) -> Floats:
    """Return the skill with one stage as it was before any practice."""
    lost = skill.copy()
    lost[..., stage] = learner.skill[:, stage]
    return lost


def practise(learner: Learner, skill: Floats, cells: Cells, success: NDArray[np.bool_]) -> Floats:
    """Return the skill after one window of rollouts; ``cells`` and ``success`` are ``[seeds, rollouts]``."""
    seeds, contexts, levels = skill.shape
    cell = ((np.arange(seeds)[:, None] * contexts + cells.context) * levels + cells.level).ravel()

    def per_cell(weight: NDArray[np.bool_]) -> Floats:
        count = np.bincount(cell, weights=weight.ravel(), minlength=skill.size)
        return np.asarray(count, np.float64).reshape(skill.shape)

    # A success from level l practised every stage from l on; a failure only the first.
    practice = np.cumsum(per_cell(success), axis=-1) + learner.hindsight * per_cell(~success)
    spread = practice.copy()
    spread[..., :-1] += learner.transfer * practice[..., 1:]
    spread[..., 1:] += learner.transfer * practice[..., :-1]
    average = np.empty_like(spread)
    for kind in np.unique(learner.kind):
        of_kind = learner.kind == kind
        average[:, of_kind] = spread[:, of_kind].mean(axis=1, keepdims=True)
    gain = learner.rate * ((1 - learner.sharing) * spread + learner.sharing * average)
    learned = 1 - (1 - skill) * np.exp(-gain)
    return learned - learner.forgetting * (learned - learner.skill)
