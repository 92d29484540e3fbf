"""Starts along the solver's solutions."""

from __future__ import annotations

from typing import Any

from scout_rl.bench.ladders.build import Built, Say, Wanted


def build(wanted: Wanted, say: Say) -> Built:
    """The states of the solutions at the rungs."""
    return wanted.family.solver_ladder(wanted.contexts, wanted.n_levels), {}


def made_of(wanted: Wanted) -> dict[str, Any]:
    """It depends on nothing else."""
    return {}
