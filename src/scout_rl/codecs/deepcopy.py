"""Codec of small pure-Python environments: a copy of the object's attributes.

If all attributes are plain data, a state is named arrays and can be saved. Else it is a deep copy in memory and cannot.
What neither can copy (a socket, a world inside another engine) is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, Start, State
from scout_rl.codecs.memory import Memory
from scout_rl.codecs.object_codec import ObjectCodec
from scout_rl.files.refusal import Refusal

OBSERVERS = (
    "_get_obs",
    "_get_ob",
    "get_obs",
    "_get_observation",
    "get_observation",
    "_observation",
    "_observe",
)
"""Common names of the method that observes."""
STATES = ("state", "s")
"""Common names of the state, for environments that observe all of it."""


class DeepcopyCodec(ObjectCodec):
    """States of environments whose attributes are Python values and arrays.

    ``observe(base_env)`` returns the observation of the state that the environment is in. Pass it if the environment
    has no method of a usual name, such as ``_get_obs``:

        DeepcopyCodec(observe=lambda env: np.array([env.x, env.y], np.float32))

    ``counters`` names the attributes that count the steps of an episode. They are 0 after a restore, so that a restored
    episode has its whole time limit. Without it they go on from where the state was taken:

        DeepcopyCodec(counters=["t"])

    Use it wherever a codec is taken: ``Recorder(env, codec)``, ``verify_codec(env, codec)``, ``CurriculumEnv(...,
    codec=codec)``.
    """

    key = "deepcopy"

    def __init__(self, observe: Callable[[Env], Any] | None = None, counters: Iterable[str] = ()) -> None:
        self._observe = observe
        self.counters = tuple(counters)

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether every attribute can be copied."""
        return not DeepcopyCodec().left_out(env)

    def get_state(self, env: Env) -> State:
        """The environment's attributes, as plain data if possible, else in memory."""
        base = env.unwrapped
        captured = self._capture(base)
        try:
            memory = Memory(base, self._zeros(base)) if captured.left_out else None
        except ValueError as error:
            raise Refusal(
                f"{type(base).__name__} holds {error}, which cannot be copied: "
                f"write a codec with get_state and set_state for it."
            ) from error
        return self._state(captured, {}, memory)

    def restore(self, base: Env, state: State, generators: bool) -> Start:
        """Put the attributes back; returns the observation and info."""
        self._restore_attributes(base, state, generators)
        observation = self._observation(base)
        info = dict(base._get_info()) if hasattr(base, "_get_info") else {}
        self._restore_attributes(base, state, generators)  # observing may draw noise or remember a frame
        return observation, info

    def left_out(self, env: Env) -> list[str]:
        """The first attribute that cannot be copied, if any."""
        base = env.unwrapped
        try:
            if self._capture(base).left_out:
                Memory(base, self._zeros(base))
        except ValueError as error:
            return [str(error)]
        return []

    def _capture(self, base: Env) -> Capture:
        return Capture(base, replace=self._zeros(base))

    def _zeros(self, base: Env) -> dict[str, int]:
        for name in self.counters:
            if not hasattr(base, name):
                raise Refusal(f"{type(base).__name__} has no attribute {name!r} to count its steps with.")
        return dict.fromkeys(self.counters, 0)

    def _observation(self, base: Env) -> Any:
        if self._observe is not None:
            return self._observe(base)
        for name in OBSERVERS:
            if callable(getattr(base, name, None)):
                return getattr(base, name)()
        space = base.observation_space
        for name in STATES:
            value = getattr(base, name, None)
            if value is None:
                continue
            shaped = np.asarray(value, dtype=space.dtype) if space.shape else int(value)
            if space.contains(shaped):
                return shaped
        raise Refusal(
            f"{type(base).__name__} has none of {', '.join(OBSERVERS)}: say how it observes, "
            f"DeepcopyCodec(observe=lambda env: ...)."
        )
