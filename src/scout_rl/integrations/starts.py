"""The reset operator of a wrapped environment: a user's function, or a ladder with a codec."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Start
from scout_rl.curriculum import Curriculum
from scout_rl.ladders.ladder import Ladder
from scout_rl.rules.rule import require

ResetTo = Callable[[Any, int, int], Start]
"""``reset_to(env, context, level)`` starts an episode from that cell and returns observation and info."""


class LadderStart:
    """Restores a state of the cell from the ladder. The environment's random generators run on, so episodes differ."""

    def __init__(self, ladder: Ladder, codec: Codec | None = None) -> None:
        self.ladder = ladder
        self.codec = codec

    def __call__(self, env: Any, context: int, level: int) -> Start:
        """Start an episode of ``env`` from the cell."""
        if self.codec is None:
            self.codec = codec_for(env)
        state = self.ladder.draw(context, level, env.np_random)
        if "generators" in inspect.signature(self.codec.set_state).parameters:
            return self.codec.set_state(env, state, generators=False)  # type: ignore[call-arg]
        return self.codec.set_state(env, state)


def reset_operator(reset_to: Any, codec: Codec | None = None) -> ResetTo:
    """Return a Ladder or a user's function as a function of (env, context, level); ``codec`` is for a ladder only."""
    require(
        codec is None or (isinstance(codec, Codec) and not isinstance(codec, type)),
        f"codec is of type {type(codec).__name__}, but must be an object with get_state and set_state",
    )
    if isinstance(reset_to, Ladder):
        return LadderStart(reset_to, codec)
    kind = type(reset_to).__name__
    require(
        callable(reset_to),
        f"reset_to is of type {kind}, but must be a Ladder or a function reset_to(env, context, level)",
    )
    require(codec is None, "codec restores the states of a Ladder, but reset_to is a function, which needs none")
    operator: ResetTo = reset_to
    return operator


def check_shape(operator: ResetTo, curriculum: Curriculum) -> None:
    """Refuse a ladder of another size than its curriculum."""
    if isinstance(operator, LadderStart):
        ladder, n_contexts, n_levels = operator.ladder, curriculum.n_contexts, curriculum.n_levels
        require(
            (ladder.n_contexts, ladder.n_levels) == (n_contexts, n_levels),
            f"the ladder has {ladder.n_contexts} contexts x {ladder.n_levels} levels, "
            f"the curriculum {n_contexts} x {n_levels}",
        )
