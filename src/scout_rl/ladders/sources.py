"""Where each context's part of a policy-derived ladder came from, and how much of it was bootstrapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sources:
    """The sources in the order in which they were asked, and what each context took.

    The last one, where there is one more than there are rows of ``succeeded``, is no policy but recorded: a solver, or
    trajectories that were given.
    """

    names: tuple[str, ...]
    assisted: tuple[bool, ...]
    """By source: whether it is more than a policy that was trained from the target start alone."""
    attempts: int
    """Made with each policy from each context's target start."""
    succeeded: tuple[tuple[int, ...], ...]
    """[policies][contexts]: how many of them succeeded; 0 also where there was no need to try."""
    chosen: tuple[int, ...]
    """By context: the index of its source."""
    steps: tuple[int, ...]
    """By context: to the first success of the solution that was kept."""

    @property
    def bootstrap_fraction(self) -> float:
        """The share of contexts whose ladder came from an assisted source."""
        return sum(self.assisted[source] for source in self.chosen) / len(self.chosen)

    @property
    def refused(self) -> tuple[tuple[int, int], ...]:
        """(source, context) where a policy succeeded, but no success had states that passed the validation."""
        return tuple(
            (source, x)
            for source, row in enumerate(self.succeeded)
            for x, n in enumerate(row)
            if n and self.chosen[x] > source
        )

    def __str__(self) -> str:
        each = [f"{self.chosen.count(i)} from the {name}" for i, name in enumerate(self.names)]
        refused = f"; in {len(self.refused)} cases no success had valid starts" if self.refused else ""
        return (
            f"policy ladder: of {len(self.chosen)} contexts {', '.join(each)}; "
            f"bootstrap fraction {self.bootstrap_fraction:.3f} ({self.attempts} attempts a policy{refused})"
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON values: a row a context."""
        rows = zip(self.chosen, self.steps, *self.succeeded, strict=True)
        return {
            "bootstrap_fraction": self.bootstrap_fraction,
            "attempts": self.attempts,
            "sources": [{"name": n, "assisted": a} for n, a in zip(self.names, self.assisted, strict=True)],
            "contexts": [
                {"source": source, "steps": steps, "succeeded": list(succeeded)} for source, steps, *succeeded in rows
            ],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Sources:
        """What :meth:`as_dict` gave."""
        contexts = given["contexts"]
        return cls(
            names=tuple(source["name"] for source in given["sources"]),
            assisted=tuple(source["assisted"] for source in given["sources"]),
            attempts=given["attempts"],
            succeeded=tuple(zip(*(row["succeeded"] for row in contexts), strict=True)),
            chosen=tuple(row["source"] for row in contexts),
            steps=tuple(row["steps"] for row in contexts),
        )
