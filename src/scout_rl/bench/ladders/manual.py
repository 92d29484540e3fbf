"""Hand-built starts."""

from __future__ import annotations

from typing import Any

from scout_rl.bench.ladders.build import Built, Say, Wanted


def build(wanted: Wanted, say: Say) -> Built:
    """The family's own operator."""
    return wanted.family.starts(wanted.contexts, wanted.n_levels), {}


def made_of(wanted: Wanted) -> dict[str, Any]:
    """Nothing else."""
    return {}
