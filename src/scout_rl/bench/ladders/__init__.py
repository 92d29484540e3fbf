"""The starts of a setting: the table of their sources, one file per source; checked, cached, drawn."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A line of the table."""

    module: str
    """Its file here. ``build(wanted, say)`` gives the ladder [contexts, levels, ...] and JSON values about it;
    ``made_of(wanted)`` says, as JSON values, what it depends on beside contexts, levels and family."""
    by_hand: bool = False
    """Whether scaffolds are placed, and so have to be at rest, and not met on the way of an episode."""
    from_runs: bool = False
    """Whether it asks the policies of trained runs. Then it checks what each gives, and needs no check at the end."""


SOURCES = {
    "manual": Source("manual", by_hand=True),
    "solver": Source("solver"),
    "policy": Source("policy", from_runs=True),
}


def require_ladder(source: str, first: str, fallback: str) -> None:
    """Refuse an unknown source, and runs (the first, and its fallback) where there should be none, or the reverse."""
    if source not in SOURCES:
        raise ValueError(f"no ladder {source!r}; the ladders are {', '.join(SOURCES)}")
    if SOURCES[source].from_runs != bool(first) or (fallback and not first):
        needs = " and ".join(name for name, line in SOURCES.items() if line.from_runs)
        raise ValueError(
            f"--ladder {needs} and --from RUN (ladder_from) belong together, and --fallback RUN is for them alone"
        )
