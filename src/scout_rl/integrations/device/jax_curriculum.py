"""`JaxCurriculum`: pure functions of a named tuple, inside ``jit``, ``scan`` and ``vmap``; see the package."""

from __future__ import annotations

import dataclasses
from typing import Any

from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.integrations.device import host
from scout_rl.integrations.device.episodes import Episodes
from scout_rl.integrations.device.state import State
from scout_rl.rules.cells import Array

with naming_extras("scout_rl.integrations.device"):
    import jax
    import jax.numpy as jnp


@dataclasses.dataclass(frozen=True, eq=False)
class JaxCurriculum(Episodes):
    """A curriculum on the device. It holds sizes and the rule; its functions are pure and take the state.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> from scout_rl import rules
        >>> from scout_rl.integrations.device import JaxCurriculum
        >>> curriculum = JaxCurriculum(rules.Ability(), 100, 5, environments=64, longest=200)
        >>> state = curriculum.init(jax.random.key(0))
        >>> step = jax.jit(curriculum.step)
        >>> state = step(state, jnp.ones(64, bool), jnp.zeros(64, bool))
    """

    def init(self, key: Array) -> State:
        """Every environment has its first cell: ``state.context``, ``state.level``. ``key`` is a random key."""
        data = jax.random.key_data(key)
        state: State = jax.tree.map(jnp.asarray, self.blank())._replace(key=data)
        return self.dealt(state, jnp.ones(self.environments, bool), self._uniform)

    def step(self, state: State, done: Array, success: Array, signal: Array | None = None) -> State:
        """Take the outcomes of the environments that are ``done``, and give them their next cells.

        ``done``, ``success`` and ``signal`` are ``[environments]``, of any number type.
        """
        host.check(self, done, success, signal)
        return self.advanced(state, jnp.asarray(done) > 0, jnp.asarray(success) > 0, signal, self._uniform)

    def drain(self, state: State, records: Curriculum) -> State:
        """Hand the closed windows to a host curriculum, which writes its records; call it outside of ``jit``."""
        fetched = jax.device_get(state)
        host.warn_uncounted(fetched)
        windows = jnp.asarray(host.drained(self, fetched, records), state.drained.dtype)
        return state._replace(named=jnp.copy(state.uncounted), drained=windows)  # a copy: states are donated

    def state_dict(self, state: State) -> dict[str, Any]:
        """The state as plain NumPy arrays and JSON values; `scout_rl.curriculum.snapshot.save` writes it."""
        return host.state_dict(self, jax.device_get(state))

    def load_state_dict(self, state_dict: dict[str, Any]) -> State:
        """The state that `state_dict` gave; one of other sizes or another rule is refused."""
        like = jax.device_get(self.init(jax.random.key(0)))
        return jax.tree.map(jnp.asarray, host.restored(self, like, state_dict))  # type: ignore[no-any-return]

    def _uniform(self, state: State) -> Array:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.decks)
        return jax.random.uniform(key, (self.environments,), state.total.dtype)
