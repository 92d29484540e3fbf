"""`HostCopy`: a JAX curriculum inside a trainer that keeps its state to itself, such as Brax's.

The state stays where the trainer carries it, in a `Carried`. Whenever a compiled function of the trainer returns it,
JAX makes that `Carried` anew around the returned arrays, and so the curriculum sees them: at the end of every epoch.
Nothing is called from within the compiled function, so nothing there waits for the host. A trainer that never returns
the state of its environments is not seen.
"""

from __future__ import annotations

import weakref
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


@jax.tree_util.register_pytree_node_class
class Carried:
    """What a trainer carries for a curriculum: a pytree that shows its state to the curriculum when it is made."""

    def __init__(self, cells: State | Cells, succeeded: Array, curriculum: weakref.ref[HostCopy] | None = None) -> None:
        self.cells, self.curriculum = cells, curriculum
        self.succeeded = succeeded
        """``[environments]``: whether the episode has succeeded so far."""
        alive = None if curriculum is None else curriculum()
        if alive is not None:
            alive._see(cells)

    def tree_flatten(self) -> tuple[Any, weakref.ref[HostCopy] | None]:
        """The arrays, and whose they are; JAX keeps the latter for ever, so it is a weak reference."""
        return (self.cells, self.succeeded), self.curriculum

    @classmethod
    def tree_unflatten(cls, curriculum: weakref.ref[HostCopy] | None, children: Any) -> Carried:
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
        self._named = self._drained = 0
        """What the host alone has counted: the episodes that were warned of, and the windows that are drained."""
        self._waiting: list[State] = []
        """The states whose logs hold the windows since the last drain, in order."""
        self._last: list[Array] = []
        """The outcomes of the last window that was drained."""

    @property
    def state(self) -> State:
        """The device's state when the trainer last returned it, as NumPy arrays."""
        require(self._begun, "there is no state before the training has begun")
        counted = {"named": np.int32(self._named), "drained": np.int32(self._drained)}
        return self._newest._replace(**counted)  # type: ignore[no-any-return]

    def _see(self, cells: Any) -> None:
        """Copy the arrays of a state that was returned; what else has the form of one is left alone."""
        if not self._begun or not isinstance(cells, State) or not _is_of(cells, self._newest):
            return
        now, decks, key = jax.device_get((cells.rule.statistics.window, cells.decks, cells.key))
        before = self._newest.rule.statistics.window
        if now < before or decks < self._newest.decks or (key != self._newest.key).any():
            return  # an older state, another training's, or numbers that a function of the tree has made
        logs = now > before and self._log_dir is not None
        fetched = jax.device_get(cells if logs else cells._replace(log=self._newest.log))
        self._newest = jax.tree.map(lambda a, b: np.reshape(a, b.shape), fetched, self._newest)
        if logs:
            self._wait(self._newest)

    def _wait(self, state: State) -> None:
        """Keep a state until `drain`, in the place of those whose windows its log holds too."""
        if self._waiting and self._missed(self._waiting[-1], self._waiting[:-1]):
            return  # the records end there
        while self._waiting and not self._missed(state, self._waiting[:-1]):
            self._waiting.pop()
        self._waiting.append(state)

    def _missed(self, state: State, earlier: list[State]) -> bool:
        """Whether windows that closed after the ``earlier`` states are no longer in the state's log."""
        handed = int(earlier[-1].rule.statistics.window) if earlier else self._drained
        return bool(state.rule.statistics.window - handed > self._device.log)

    def _hand_over(self, records: Curriculum) -> None:
        host.warn_uncounted(self.state)
        self._named = int(self._newest.uncounted)
        while self._waiting:
            state = self._waiting[0]
            if self._missed(state, []):
                host.warn_ended(self._drained, "in an epoch", self._device.log, "take more epochs")
                break
            if self._drained > int(state.rule.statistics.window) - self._device.log:
                same = all(map(np.array_equal, self._last, self._outcomes(state, self._drained - 1)))
                about = "are others than were drained: the environments were stepped from an older state too"
                require(same, f"the outcomes of window {self._drained - 1} {about}")
            try:
                host.drained(self._device, state._replace(drained=np.int32(self._drained)), records)
            finally:
                self._drained = records.windows
                self._last = self._outcomes(state, self._drained - 1)
            self._waiting.pop(0)

    def _outcomes(self, state: State, window: int) -> list[Array]:
        """A window in the log of a state that has closed it."""
        return [column[window % self._device.log].copy() for column in state.log if column is not None]

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
        sizes = {"environments": environments, "longest": longest, "window": self._window, "log": self._log}
        device = JaxCurriculum(self.rule, self.n_contexts, self.n_levels, oracle_group=self._oracle_group, **sizes)
        with jax.ensure_compile_time_eval():
            if self._loaded is not None:
                first = device.load_state_dict(self._loaded)
            else:
                first = device.init(jax.random.key(self._seed))
            self._newest = jax.device_get(first)
        self._device, self._named, self._drained = device, int(first.named), int(first.drained)
        self._last = self._outcomes(self._newest, self._drained - 1)
        self._begin(device.window)

    def _again(self) -> State:
        """The newest state; every environment begins the episode of its cell once more."""
        return self.state._replace(age=np.zeros_like(self._newest.age))


def _is_of(cells: State, like: State) -> bool:
    """Whether all arrays are there, not traced and not given away, with the types and sizes of ``like``."""
    leaves, others = jax.tree.leaves(cells), jax.tree.leaves(like)
    return len(leaves) == len(others) and all(
        isinstance(a, jax.Array)
        and not isinstance(a, jax.core.Tracer)
        and not a.is_deleted()
        and (a.dtype, a.size) == (b.dtype, b.size)
        for a, b in zip(leaves, others, strict=True)
    )
