"""Hand-built starts."""

from __future__ import annotations

from typing import Any

from scout_rl.bench.ladders.build import Built, Say, Wanted


def build(wanted: Wanted, say: Say) -> Built:
    """The ladder of the family's reset operator."""
    return wanted.family.starts(wanted.contexts, wanted.n_levels), {}


def made_of(wanted: Wanted) -> dict[str, Any]:
    """It depends on nothing else."""
    return {}
