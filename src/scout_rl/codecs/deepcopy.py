"""Fallback codec of small pure-Python environments: a deep copy of the object into plain data.

It refuses an environment that holds what plain data cannot (a socket, a world inside another engine) and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, Start, State, check_origin, restart
from scout_rl.codecs.kinds import own_packages
from scout_rl.codecs.restoring import Restore
from scout_rl.files.archive import pack_json

OBSERVERS = (
    "_get_obs",
    "_get_ob",
    "get_obs",
    "_get_observation",
    "get_observation",
    "_observation",
    "_observe",
)
"""Names under which environments commonly keep the method that observes."""
STATES = ("state", "s")
"""Names under which those whose observation is their state keep it."""


class DeepcopyCodec:
    """States of environments whose attributes are Python values and arrays.

    ``observe(base_env)`` says what the agent sees; without it the usual method names are tried.
    ``counters`` names attributes that count the episode's steps and start again at 0.
    ``packages`` names further packages whose objects belong to the state.
    """

    key = "deepcopy"
    exact = True

    def __init__(
        self,
        observe: Callable[[Env], Any] | None = None,
        counters: Iterable[str] = (),
        packages: Iterable[str] = (),
    ) -> None:
        self._observe = observe
        self._counters = tuple(counters)
        self._packages = frozenset(packages)

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether every attribute is plain data, an object of the environment's package, or a constant."""
        return not Capture(env.unwrapped, packages=own_packages(env.unwrapped)).left_out

    @property
    def library(self) -> dict[str, str]:
        """None: the environment is the user's own code."""
        return {}

    def get_state(self, env: Env) -> State:
        """A deep copy of the environment's attributes."""
        base = env.unwrapped
        captured = self._capture(base)
        if captured.left_out:
            raise ValueError(
                f"{type(base).__name__} holds {', '.join(captured.left_out)}, which cannot be copied into "
                f"arrays: write a codec with get_state and set_state for it."
            )
        arrays = {"attributes": pack_json(captured.value)}
        arrays.update({f"attributes/{name}": array for name, array in captured.arrays.items()})
        return State(arrays, self.key, self.library)

    def set_state(self, env: Env, state: State, *, generators: bool = True) -> Start:
        """Start an episode in ``state``; ``generators=False`` lets the live random generators run on."""
        base = env.unwrapped
        check_origin(state, self.key, self.library)
        value, arrays = state.attributes
        packages = own_packages(base) | self._packages

        def restore() -> Start:
            Restore(base, value, arrays, packages=packages, generators=generators).attributes()
            observation = self._observation(base)
            info = dict(base._get_info()) if hasattr(base, "_get_info") else {}
            Restore(base, value, arrays, packages=packages, generators=generators).attributes()
            return observation, info

        return restart(env, restore)

    def goal(self, state: State) -> None:
        """Unknown for an environment of one's own."""
        return None

    def left_out(self, env: Env) -> list[str]:
        """Attributes that cannot be copied into plain data."""
        return self._capture(env.unwrapped).left_out

    def _capture(self, base: Env) -> Capture:
        for name in self._counters:
            if not hasattr(base, name):
                raise ValueError(f"{type(base).__name__} has no attribute {name!r} to count its steps with.")
        zeros = dict.fromkeys(self._counters, 0)
        return Capture(base, packages=own_packages(base) | self._packages, replace=zeros)

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
        raise ValueError(
            f"{type(base).__name__} has none of {', '.join(OBSERVERS)}: say how it observes, "
            f"DeepcopyCodec(observe=lambda env: ...)."
        )
