"""The contract of an allocation rule: three pure functions over plain arrays.

A rule is a frozen dataclass of hyper-parameters, named after the paper's symbols. It has no environment, learner,
random generator or clock.

    state = rule.init(n_contexts, n_levels, oracle_group=None)
    p     = rule.distribution(state)      # [contexts, levels], non-negative, sums to 1
    state = rule.update(state, outcomes)  # one window: statistics, then one transition pass

States are named tuples of arrays, and so JAX pytrees: ``jax.tree.map(jnp.asarray, state)`` moves one onto the device,
and ``jax.jit(rule.update)`` and ``jax.vmap`` work. With ``torch.as_tensor`` on every array it is a torch state, and
nothing of it is read on the host. On NumPy, arrays may have leading axes
(``[seeds, contexts, levels]``); every function keeps them.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

import numpy as np

from scout_rl.files.refusal import Refusal
from scout_rl.rules.cells import Array, Outcomes

T = TypeVar("T")
State = Any
"""A named tuple of arrays. Each rule has its own type, with a ``statistics`` field (see ``statistics.py``)."""


SCHEDULES = ("T_anneal", "T")
"""Rule constants that are the length of a shared schedule, in windows."""


class Status(IntEnum):
    """What the last transition pass did with a context, or why it did nothing."""

    GATHERING = 0
    """The frontier cell has fewer outcomes than the rule needs."""
    COOLING = 1
    """The frontier moved within the last ``cooldown`` windows."""
    DEADBAND = 2
    """Neither success nor failure is clear enough."""
    TARGET = 3
    """At level 0, and not about to retreat."""
    EASIEST = 4
    """Failing at level L: there is no easier start."""
    CONFIRMING = 5
    """The tests gave a direction, and must give it again before the frontier moves."""
    ADVANCED = 6
    RETREATED = 7
    PROBED = 8
    """Moved harder by antistall."""
    LEARNING = 9
    """Some level is neither too hard nor mastered."""
    MASTERED = 10
    """The target start succeeds nearly always."""
    TOO_HARD_AT_THE_EASIEST_LEVEL = 11
    """Even the easiest level hardly ever succeeds."""
    SELDOM_DRAWN = 12
    """Its last outcome is long ago: what is known of it is what the bank shows."""

    @property
    def word(self) -> str:
        """The name in plain words: ``too hard at the easiest level``."""
        return self.name.lower().replace("_", " ")


class Rule(ABC):
    """Which cells the next window trains from."""

    key: ClassVar[str]
    """The name in the registry, the command line and every table."""
    gate_constant: ClassVar[str] = ""
    """The rule's constant that says how many outcomes a move needs; empty for rules without a frontier."""

    @property
    def needs_signal(self) -> bool:
        """Whether every outcome needs the learner's signal."""
        return False

    @property
    def evidence_gate(self) -> int | None:
        """How many outcomes a cell needs before its frontier can move; None for rules without a frontier."""
        return int(getattr(self, self.gate_constant)) if self.gate_constant else None

    @abstractmethod
    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> State:
        """Return the state before the first window."""

    @abstractmethod
    def distribution(self, state: State) -> Array:
        """Return the probability of every cell, ``[..., contexts, levels]``."""

    @abstractmethod
    def update(self, state: State, outcomes: Outcomes) -> State:
        """Close one window: count the outcomes in order, then make one transition pass."""

    # Only rules with a frontier have these; None means no frontier.

    def frontier(self, state: State) -> Array | None:
        """Return the frontier of every context, ``[..., contexts]``, or None."""
        return None

    def context_probabilities(self, state: State) -> Array | None:
        """Return the probability of every context at its frontier, ``[..., contexts]``, or None."""
        return None

    def status(self, state: State) -> Array | None:
        """Return every context's ``Status`` after the last transition pass, or None."""
        return None

    def moved(self, state: State) -> Array | None:
        """Return every context's last move: -1 advanced, 1 retreated, -2 advanced by antistall, 0 stayed; or None."""
        return None

    def chance(self, state: State) -> tuple[Array, Array] | None:
        """Return the estimated success of every cell, and its standard error in logits; None without a model."""
        return None

    def basis(self, state: State, context: Array, level: Array) -> tuple[Array, Array]:
        """Return the success statistic and the evidence behind a decision at these cells (no leading axes)."""
        return state.statistics.success[context, level], state.statistics.evidence[context, level]

    def __post_init__(self) -> None:
        """Refuse constants outside their limits (`limited`)."""
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            if "fits" in f.metadata:
                value = getattr(self, f.name)
                require(f.metadata["fits"](value), f"{type(self).__name__}: {f.metadata['sentence'].format(value)}")

    def constants(self) -> dict[str, Any]:
        """Return the hyper-parameters as JSON values."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: _plain(getattr(self, f.name)) for f in fields}


def limited(default: T, fits: Callable[[Any], bool], sentence: str) -> T:
    """The default of a constant that is refused unless it ``fits``; ``{}`` in the sentence stands for the value."""
    constant: T = dataclasses.field(default=default, metadata={"fits": fits, "sentence": sentence})
    return constant


def _plain(value: Any) -> Any:
    """``value`` without NumPy numbers, which JSON does not have: constants may come from a sweep over an array."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def require(condition: bool, sentence: str) -> None:
    """Raise ``Refusal(sentence)`` unless ``condition`` holds."""
    if not condition:
        raise Refusal(sentence)


def check_shape(n_contexts: int, n_levels: int) -> None:
    """Refuse a bank or a ladder that no rule can work with."""
    require(n_contexts >= 1, f"n_contexts is {n_contexts}, but a bank has at least one context")
    require(
        2 <= n_levels <= 127,
        f"n_levels is {n_levels}, but a ladder has 2 to 127 levels (the target start is one)",
    )
