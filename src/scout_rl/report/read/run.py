"""One frozen value for every kind of record: what a run is, and its arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal
from scout_rl.records.made_with import BATCH, ENGINE, WIDTH
from scout_rl.report.read.catalogue import KnownSetting

UNKNOWN = "unknown"
"""The machine of a record that does not name it."""


@dataclass(frozen=True)
class About:
    """What a run is, without its arrays."""

    name: str
    """Where its records lie."""
    kind: str
    """``compact``, ``folder`` or ``log_dir``."""
    setting: str
    """Empty for a ``log_dir``."""
    rule: str
    seed: int
    config: dict[str, Any]
    versions: dict[str, str]
    bank_sha256: str
    n_contexts: int
    n_levels: int
    windows: int
    """Closed windows."""
    budget: int
    """Planned windows; the closed ones where no plan is recorded."""
    ran_on: dict[str, Any]
    """Backend, processor, cores, threads; empty where not recorded."""
    environment_steps: int = 0
    """0 where unknown."""
    seconds: float = 0.0
    """Wall time of all windows; 0 where unknown."""
    first: int = 0
    """Number of the first recorded window; above 0 where a curriculum was restored into a new ``log_dir``."""
    last_evaluation: int | None = None
    """Windows closed at the last held-out evaluation; None where there was none."""
    known: KnownSetting | None = None
    """The setting's entry in the catalogue."""
    bootstrap_fraction: float | None = None
    """Of a policy ladder: the share of contexts whose starts needed more than the target-start policy."""

    @property
    def finished(self) -> bool:
        """Whether the budget is used up and the end was evaluated (a ``log_dir`` needs no evaluation)."""
        evaluated = self.kind == "log_dir" or self.last_evaluation == self.budget
        return self.windows > 0 and self.windows >= self.budget and evaluated

    @property
    def machine(self) -> str:
        """The GPU where there was one, else the processor; and the width of a batch, whose runs share the time."""
        on = self.ran_on
        name = str(on.get("device" if on.get("backend") == "gpu" else "processor", UNKNOWN)).split(" Processor")[0]
        return f"{name} (batch of {on[WIDTH]})" if on.get(ENGINE) == BATCH else name


class Moves(NamedTuple):
    """Frontier moves in order, one array entry per move."""

    window: NDArray[np.int32]
    """0 is the first recorded window, as in all arrays of a run."""
    context: NDArray[np.int32]
    kind: NDArray[np.int8]
    """Index into ``tables.KINDS``."""
    from_level: NDArray[np.int8]


class Rollouts(NamedTuple):
    """Training rollouts in order, one array entry per rollout."""

    window: NDArray[np.int32]
    context: NDArray[np.int32]
    level: NDArray[np.int8]
    success: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run's records."""

    about: About
    rollouts: Rollouts
    frontier: NDArray[np.int8] | None
    """``[windows, contexts]`` after each window."""
    moves: Moves
    groups: tuple[str, ...]
    """Names of the evaluation groups; empty where unknown."""
    context_group: NDArray[np.int64] | None
    """``[contexts]``: index into ``groups``; None where unknown."""
    oracle_group: NDArray[np.int64] | None = None
    """``[contexts]``: the labels of an oracle rule; None where unknown."""
    evaluated_at: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """``[evaluations]``: windows closed; empty where the run had no held-out evaluation."""
    held_out: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """``[evaluations]``: success over all held-out contexts."""
    held_out_groups: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """The same by evaluation group."""
    steps_at: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """``[windows]``: environment steps so far; empty where unknown."""
    seconds_at: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """``[windows]``: wall time so far; empty where unknown, in proportion to windows for a compact record."""

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        a, rollouts, moves = self.about, self.rollouts, self.moves
        _check_range("a rollout's context", rollouts.context, a.n_contexts)
        _check_range("a rollout's level", rollouts.level, a.n_levels)
        if self.frontier is not None:
            if self.frontier.shape != (a.windows, a.n_contexts):
                rows, width = self.frontier.shape
                raise Refusal(
                    f"the frontier has {rows} rows of {width} contexts, and there are {a.windows} windows "
                    f"of {a.n_contexts}"
                )
            _check_range("a frontier's level", self.frontier, a.n_levels)
        _check_range("a move's context", moves.context, a.n_contexts)
        _check_range("a move's window", moves.window, a.windows)
        for labels in (self.context_group, self.oracle_group):
            if labels is not None and len(labels) != a.n_contexts:
                raise Refusal(f"it has labels for {len(labels)} training contexts, and there are {a.n_contexts}")
        lengths = {len(self.evaluated_at), len(self.held_out), *(len(curve) for curve in self.held_out_groups.values())}
        if len(lengths) > 1:
            raise Refusal(f"its held-out curves have {' and '.join(map(str, sorted(lengths)))} evaluations")


def _check_range(what: str, values: NDArray[Any], end: int) -> None:
    if len(values) and not 0 <= values.min() <= values.max() < end:
        wrong = values.min() if values.min() < 0 else values.max()
        raise Refusal(f"{what} is {wrong}, which is not in 0 to {end - 1}")
