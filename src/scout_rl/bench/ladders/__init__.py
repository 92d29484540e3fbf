"""The starts of a setting: the table of ladder sources, one file per source; checked, cached, drawn."""

from __future__ import annotations

from typing import NamedTuple

from scout_rl.files.refusal import Refusal


class Source(NamedTuple):
    """A row of the table. Its name is that of its file in this folder.

    ``build(wanted, say)`` in the file returns the ladder [contexts, levels, ...] and JSON values about it.
    ``made_of(wanted)`` returns JSON values that it depends on, besides contexts, levels and family.
    """

    by_hand: bool = False
    """Whether scaffolds are placed, not taken from an episode. Then they must be at rest."""
    from_runs: bool = False
    """Whether it plays the policies of trained runs. Then it validates its starts itself."""


SOURCES = {
    "manual": Source(by_hand=True),
    "solver": Source(),
    "policy": Source(from_runs=True),
}


def require_ladder(source: str, first: str, fallback: str) -> None:
    """Refuse an unknown source, a source that needs runs without them, and runs for a source that needs none."""
    if source not in SOURCES:
        raise Refusal(f"no ladder {source!r}; the ladders are {', '.join(SOURCES)}")
    if SOURCES[source].from_runs != bool(first) or (fallback and not first):
        needs = " and ".join(name for name, row in SOURCES.items() if row.from_runs)
        raise Refusal(
            f"--ladder {needs} and --from RUN (ladder_from) belong together, and --fallback RUN is for them alone"
        )
