"""The reset operator of a wrapped environment: a user's function, or a ladder with a codec."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec
from scout_rl.curriculum import Curriculum
from scout_rl.ladders.ladder import Ladder
from scout_rl.rules.rule import require

Start = tuple[Any, dict[str, Any]]
"""What ``reset()`` returns: observation and info."""
ResetTo = Callable[[Any, int, int], Start]
"""``reset_to(env, context, level)`` starts an episode from that cell and returns observation and info."""


class LadderStart:
    """Restores a state of the ladder's cell; the environment's random generators run on, so episodes differ."""

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


def reset_operator(given: Any, codec: Codec | None = None) -> ResetTo:
    """Return ``given`` as a function of (env, context, level); ``codec`` is for a ladder alone."""
    require(
        codec is None or (isinstance(codec, Codec) and not isinstance(codec, type)),
        f"codec is of type {type(codec).__name__}, but must be an object with get_state and set_state",
    )
    if isinstance(given, Ladder):
        return LadderStart(given, codec)
    require(
        callable(given),
        f"reset_to is of type {type(given).__name__}, but must be a Ladder or a function reset_to(env, context, level)",
    )
    require(codec is None, "codec restores the states of a Ladder, but reset_to is a function, which needs none")
    operator: ResetTo = given
    return operator


def check_shape(operator: ResetTo, curriculum: Curriculum) -> None:
    """Refuse a ladder of another size than its curriculum, before any training time is spent."""
    if isinstance(operator, LadderStart):
        ladder = operator.ladder
        there, here = (ladder.n_contexts, ladder.n_levels), (curriculum.n_contexts, curriculum.n_levels)
        require(
            there == here,
            f"the ladder has {there[0]} contexts x {there[1]} levels, the curriculum {here[0]} x {here[1]}",
        )
