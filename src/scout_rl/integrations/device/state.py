"""What a device curriculum holds: named tuples of plain arrays, JAX pytrees."""

from __future__ import annotations

from typing import Any, NamedTuple

from scout_rl.rules.cells import Array


class Outcome(NamedTuple):
    """Outcomes on the device, ``[places]`` in the queue and ``[windows, window]`` in the log."""

    code: Array
    """0: not ended; else ``1 + 2 * (context * levels + level) + success``. One number is one scatter."""
    signal: Array | None
    """None for rules that need no signal."""


class State(NamedTuple):
    """All that a continuation needs: plain arrays, a JAX pytree."""

    rule: Any
    """The rule's state: ``curriculum.rule.frontier(state.rule)``, ``curriculum.rule.chance(state.rule)``."""
    context: Array
    """``[environments]``: the context that each environment plays."""
    level: Array
    """``[environments]``: the level that it started from."""
    place: Array
    """``[environments]``: its episode's place in the queue; the length of the queue where it does not count."""
    age: Array
    """``[environments]``: calls since the episode started."""
    queue: Outcome
    queued: Array
    """Places taken."""
    uncounted: Array
    """Episodes that were not counted, because the queue was full when they started."""
    named: Array
    """How many of them `drain` has warned of."""
    total: Array
    """The running sum of the distribution: over contexts for rules with one active cell each, else over cells."""
    deck: Array
    """``[environments]``: the next cells, drawn in advance (an index into ``total``)."""
    dealt: Array
    """Cells of the deck that are used up."""
    decks: Array
    """Decks so far: the number of the next random draw."""
    log: Outcome
    """The windows that closed last: window w is in row ``w % log``."""
    drained: Array
    """Windows that were handed over to records."""
    key: Array | None
    """JAX: the data of the random key; torch keeps a generator."""
