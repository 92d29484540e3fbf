"""Which source each context of a policy-derived ladder took, and how many contexts were bootstrapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sources:
    """The sources in the order in which they were tried, and the one that each context took.

    Policies come first, one per row of ``succeeded``. A source after them is a solver or recorded trajectories.
    """

    names: tuple[str, ...]
    assisted: tuple[bool, ...]
    """By source: False for a policy that was trained from the target start alone."""
    attempts: int
    """Attempts per policy and context, from the target start."""
    succeeded: tuple[tuple[int, ...], ...]
    """``[policies][contexts]``: successful attempts; 0 also where none was needed."""
    source_of: tuple[int, ...]
    """By context: the index of its source."""
    steps: tuple[int, ...]
    """By context: steps to the first success of its solution."""

    @property
    def bootstrap_fraction(self) -> float:
        """The share of contexts that took an assisted source."""
        return sum(self.assisted[source] for source in self.source_of) / len(self.source_of)

    @property
    def refused(self) -> tuple[tuple[int, int], ...]:
        """(source, context) pairs in which a policy succeeded, but no success had valid states."""
        return tuple(
            (source, x)
            for source, row in enumerate(self.succeeded)
            for x, n in enumerate(row)
            if n and self.source_of[x] > source
        )

    def __str__(self) -> str:
        each = [f"{self.source_of.count(i)} from the {name}" for i, name in enumerate(self.names)]
        refused = f"; in {len(self.refused)} cases no success had valid starts" if self.refused else ""
        return (
            f"policy ladder: of {len(self.source_of)} contexts {', '.join(each)}; "
            f"bootstrap fraction {self.bootstrap_fraction:.3f} ({self.attempts} attempts a policy{refused})"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON values, one row per context."""
        rows = zip(self.source_of, self.steps, *self.succeeded, strict=True)
        return {
            "bootstrap_fraction": self.bootstrap_fraction,
            "attempts": self.attempts,
            "sources": [{"name": n, "assisted": a} for n, a in zip(self.names, self.assisted, strict=True)],
            "contexts": [
                {"source": source, "steps": steps, "succeeded": list(succeeded)} for source, steps, *succeeded in rows
            ],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sources:
        """From the values of `as_dict`."""
        contexts = values["contexts"]
        return cls(
            names=tuple(source["name"] for source in values["sources"]),
            assisted=tuple(source["assisted"] for source in values["sources"]),
            attempts=values["attempts"],
            succeeded=tuple(zip(*(row["succeeded"] for row in contexts), strict=True)),
            source_of=tuple(row["source"] for row in contexts),
            steps=tuple(row["steps"] for row in contexts),
        )
