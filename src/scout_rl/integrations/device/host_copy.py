"""`HostCopy`: a JAX curriculum inside a trainer that hands out no state, such as Brax's.

The state stays where the trainer carries it, in a `Carried`. Whenever a compiled function of the trainer returns, JAX
makes that `Carried` anew around the arrays that the function returned, and so the curriculum sees them: at the end of
every epoch. Nothing is called from within the compiled function, so nothing there waits for the host.
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
from scout_rl.rules.cells import Array, Cells
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.device"):
    import jax
    from jax.experimental import io_callback

REMEMBERED = 2**20
"""Outcomes that the log holds: those of the trainer's longest epoch, in 4 MB."""


@jax.tree_util.register_pytree_node_class
class Carried:
    """What a trainer carries for a curriculum: a pytree that shows its state to the curriculum when it is made."""

    def __init__(self, cells: State | Cells, succeeded: Array, curriculum: HostCopy | None = None) -> None:
        self.cells, self.curriculum = cells, curriculum
        self.succeeded = succeeded
        """``[environments]``: whether the episode has succeeded so far."""
        if curriculum is not None:
            curriculum._see(cells)

    def tree_flatten(self) -> tuple[Any, HostCopy | None]:
        """The arrays, and whose they are."""
        return (self.cells, self.succeeded), self.curriculum

    @classmethod
    def tree_unflatten(cls, curriculum: HostCopy | None, children: Any) -> Carried:
        """Also around tracers, and around whatever else JAX puts in the place of arrays."""
        cells, succeeded = children
        return cls(cells, succeeded, curriculum)


class HostCopy(Training):
    """The curriculum of one training. A subclass calls `begun` and `stepped` while the trainer traces its loop."""

    def __init__(self, rule: Rule, n_contexts: int, n_levels: int, *, window: int, log: int, **options: Any) -> None:
        super().__init__(rule, n_contexts, n_levels, **options)
        self._window, self._log = window, log
        self._device: Any = None
        self._newest: Any = None
        self._known: dict[str, Array] = {}
        """What the host alone has counted: the windows that are drained, and the episodes that were warned of."""
        self._waiting: list[State] = []

    @property
    def state(self) -> State:
        """The device's state when the trainer last returned it, as NumPy arrays."""
        require(self._begun, "there is no state before the training has begun")
        return self._newest._replace(**self._known)  # type: ignore[no-any-return]

    def _see(self, cells: Any) -> None:
        """Copy the arrays of a state that was returned. Tracers and other things in their place are none."""
        leaves = jax.tree.leaves(cells)
        if not self._begun or any(not isinstance(a, jax.Array) or isinstance(a, jax.core.Tracer) for a in leaves):
            return
        like, structure = jax.tree.flatten(self._newest)
        if [a.size for a in leaves] != [a.size for a in like]:
            return  # a batch of trainings, or a part of one
        arrays = jax.device_get(leaves)
        state = jax.tree.unflatten(structure, [a.reshape(b.shape) for a, b in zip(arrays, like, strict=True)])
        before, now = (int(s.rule.statistics.window) for s in (self._newest, state))
        if now >= before:
            self._newest = state
        if now > before and self._log_dir is not None:
            self._wait(state, now)

    def _wait(self, state: State, now: int) -> None:
        """Keep a state until `drain`, in the place of the one before where its log holds that one's windows too."""
        *before, _ = [self._known["drained"], *(s.rule.statistics.window for s in self._waiting)]
        if before and now - int(before[-1]) <= self._device.log:
            self._waiting.pop()
        self._waiting.append(state)

    def _hand_over(self, records: Curriculum) -> None:
        host.warn_uncounted(self.state)
        self._known["named"] = self._newest.uncounted
        waiting, self._waiting = self._waiting, []
        for state in waiting:
            drained = host.drained(self._device, state._replace(**self._known), records)
            self._known["drained"] = np.asarray(drained, state.drained.dtype)
            if drained < state.rule.statistics.window:
                break

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
        """Take outcomes and deal cells."""
        return self._device.step(state, done, success)  # type: ignore[no-any-return]

    def _make(self, environments: int, longest: int) -> None:
        sizes = {"environments": environments, "longest": longest, "window": self._window}
        groups = self._oracle_group
        device = JaxCurriculum(self.rule, self.n_contexts, self.n_levels, oracle_group=groups, **sizes)
        sizes |= {"window": device.window, "log": self._log or max(64, REMEMBERED // device.window)}
        device = JaxCurriculum(self.rule, self.n_contexts, self.n_levels, oracle_group=groups, **sizes)
        with jax.ensure_compile_time_eval():
            if self._loaded is not None:
                first = device.load_state_dict(self._loaded)
            else:
                first = device.init(jax.random.key(self._seed))
            self._newest = jax.device_get(first)
        self._device, self._known = device, {name: getattr(self._newest, name) for name in ("named", "drained")}
        self._begin(device.window)

    def _again(self) -> State:
        """The newest state; every environment begins the episode of its cell once more."""
        return self.state._replace(age=np.zeros_like(self._newest.age))
