"""`HostCopy`: a JAX curriculum inside a trainer that hands out no state, such as Brax's.

The state stays where the trainer carries it. When a window closes, a callback takes a copy; steps in between do not
wait for the host. The copy is what users look at, drain and save.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.integrations.device import host
from scout_rl.integrations.device.jax_curriculum import JaxCurriculum
from scout_rl.integrations.device.state import State
from scout_rl.integrations.device.training import Training
from scout_rl.rules.cells import Array
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.device"):
    import jax
    import jax.numpy as jnp
    from jax.experimental import io_callback


class HostCopy(Training):
    """The curriculum of one training. A subclass calls `begun` and `stepped` while the trainer traces its loop."""

    def __init__(self, rule: Rule, n_contexts: int, n_levels: int, *, window: int = 0, **options: Any) -> None:
        super().__init__(rule, n_contexts, n_levels, **options)
        self._window = window
        self._device: Any = None
        self._newest: Any = None
        self._named: Any = None
        """The uncounted episodes that were named: the host knows them, and the device's state only after a reset."""
        self._waiting: list[State] = []

    @property
    def state(self) -> State:
        """The device's state after the last window that closed, as NumPy arrays."""
        require(self._begun, "there is no state before the training has begun")
        jax.effects_barrier()
        return self._newest._replace(named=self._named)  # type: ignore[no-any-return]

    def _hand_over(self, records: Curriculum) -> None:
        newest = self.state
        host.warn_uncounted(newest)
        self._named = newest.uncounted
        arrived, self._waiting = self._waiting, []
        for state in sorted(arrived, key=lambda state: int(state.rule.statistics.window)):
            host.drained(self._device, state, records)
        assert records.windows == int(newest.rule.statistics.window), "a closed window has not come over"

    def _state_dict(self) -> dict[str, Any]:
        return host.state_dict(self._device, self.state)

    # -- while the training is traced --------------------------------------------------------------------------------

    def begun(self, environments: int, longest: int) -> State:
        """The first state of a training; where a trainer resets all environments later, the newest one."""
        if not self._begun:
            self._make(environments, longest)
        like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), self._newest)
        return io_callback(self._again, like)  # type: ignore[no-any-return]

    def stepped(self, state: State, done: Array, success: Array) -> State:
        """Take outcomes and deal cells; where a window has closed, hand a copy of the state to the host."""

        def hand_over(state: State) -> State:
            jax.debug.callback(self._take, _packed(state))
            return state._replace(logged=jnp.zeros_like(state.logged))

        return self._device.step(state, done, success, logged=hand_over)  # type: ignore[no-any-return]

    def _make(self, environments: int, longest: int) -> None:
        sizes = {"environments": environments, "longest": longest, "window": self._window, "log": 1}
        self._device = JaxCurriculum(
            self.rule, self.n_contexts, self.n_levels, oracle_group=self._oracle_group, **sizes
        )
        with jax.ensure_compile_time_eval():
            if self._loaded is not None:
                first = self._device.load_state_dict(self._loaded)
            else:
                first = self._device.init(jax.random.key(self._seed))
            self._newest = jax.device_get(first)
            self._named = self._newest.named
        self._begin(self._device.window)

    def _again(self) -> State:
        """The newest state; every environment begins the episode of its cell once more."""
        return self._newest._replace(age=np.zeros_like(self._newest.age), named=self._named)  # type: ignore[no-any-return]

    def _take(self, packed: Array) -> None:
        state = _unpacked(packed, self._newest)
        if self._log_dir is not None:
            self._waiting.append(state)
        if state.rule.statistics.window >= self._newest.rule.statistics.window:
            self._newest = state._replace(logged=np.zeros_like(state.logged))


def _packed(state: State) -> Array:
    """The bytes of all arrays in one: every array that a callback is handed costs a transfer of its own."""
    columns = [jax.lax.bitcast_convert_type(leaf, jnp.uint8).reshape(-1) for leaf in jax.tree.leaves(state)]
    return jnp.concatenate(columns)


def _unpacked(packed: Array, like: State) -> State:
    """The state whose bytes these are, as NumPy arrays with the shapes and types of ``like``."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.nbytes for leaf in leaves])
    parts = np.split(np.asarray(packed), ends[:-1])
    arrays = (np.frombuffer(p.tobytes(), leaf.dtype).reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True))
    return jax.tree.unflatten(structure, arrays)  # type: ignore[no-any-return]
