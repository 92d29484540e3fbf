"""`HostCopy`: a JAX curriculum inside a trainer that hands out no state, such as Brax's.

The state stays where the trainer carries it. When a window closes, a callback takes a copy; steps in between do not
wait for the host. The copy is what users look at, drain and save.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from scout_rl.curriculum import Curriculum, snapshot
from scout_rl.files.extras import naming_extras
from scout_rl.integrations.device import host
from scout_rl.integrations.device.jax_curriculum import JaxCurriculum
from scout_rl.integrations.device.state import State
from scout_rl.rules.cells import Array
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.device"):
    import jax
    import jax.numpy as jnp
    from jax.experimental import io_callback


class HostCopy:
    """The curriculum of one training. A subclass calls `begun` and `stepped` while the trainer traces its loop."""

    def __init__(
        self,
        rule: Rule,
        n_contexts: int,
        n_levels: int,
        *,
        seed: int = 0,
        window: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.rule, self.n_contexts, self.n_levels = rule, n_contexts, n_levels
        self._seed, self._window, self._log_dir, self._name = seed, window, log_dir, name
        self._device: Any = None
        self._records: Any = None
        self._newest: Any = None
        self._waiting: list[State] = []
        self._loaded: Path | None = None

    @property
    def state(self) -> State:
        """The device's state after the last window that closed, as NumPy arrays."""
        require(self._newest is not None, "there is no state before the training has begun")
        jax.effects_barrier()
        return self._newest  # type: ignore[no-any-return]

    @property
    def frontier(self) -> Array | None:
        """The frontier of every context after the last window that closed; None for rules without one."""
        return self.rule.frontier(self.state.rule)

    def drain(self) -> Curriculum:
        """Write the closed windows into ``log_dir``; return the host's curriculum, which has counted them."""
        require(self._log_dir is not None, "there are no records to drain: this curriculum has no log_dir")
        newest = self.state
        arrived, self._waiting = self._waiting, []
        for state in sorted(arrived, key=lambda state: int(state.rule.statistics.window)):
            host.drained(self._device, state, self._records)
        assert self._records.windows == int(newest.rule.statistics.window), "a closed window has not come over"
        return self._records  # type: ignore[no-any-return]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Drain, and write to ``folder`` what `load` takes."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        if self._log_dir is not None:
            self.drain().save(Path(folder) / "records.npz")
        snapshot.save(host.state_dict(self._device, self.state), Path(folder) / "device.npz")

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Begin the next training where another was saved; it needs as many environments."""
        require(self._newest is None, "the training has begun: load comes before it")
        self._loaded = Path(folder)

    # -- while the training is traced --------------------------------------------------------------------------------

    def begun(self, environments: int, longest: int) -> State:
        """The first state of a training; where a trainer resets all environments later, the newest one."""
        if self._newest is None:
            self._begin(environments, longest)
        like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), self._newest)
        return io_callback(self._again, like)  # type: ignore[no-any-return]

    def stepped(self, state: State, done: Array, success: Array) -> State:
        """Take outcomes and deal cells; where a window has closed, hand a copy of the state to the host."""

        def hand_over(state: State) -> State:
            jax.debug.callback(self._take, state)
            return state._replace(logged=jnp.zeros_like(state.logged))

        return self._device.step(state, done, success, logged=hand_over)  # type: ignore[no-any-return]

    def _begin(self, environments: int, longest: int) -> None:
        shape = self.n_contexts, self.n_levels
        sizes = {"environments": environments, "longest": longest, "window": self._window}
        self._device = JaxCurriculum(self.rule, *shape, log=1, **sizes)
        if self._log_dir is not None:
            about = {"window": self._device.window, "log_dir": self._log_dir, "name": self._name}
            self._records = Curriculum(self.rule, *shape, seed=self._seed, **about)
            if self._loaded is not None:
                self._records.load(self._loaded / "records.npz")
            self._records.assign(0)  # refuses a folder that holds another run
        with jax.ensure_compile_time_eval():
            if self._loaded is not None:
                first = self._device.load_state_dict(snapshot.load(self._loaded / "device.npz"))
            else:
                first = self._device.init(jax.random.key(self._seed))
            self._newest = jax.device_get(first)

    def _again(self) -> State:
        """The newest state; every environment begins the episode of its cell once more."""
        return self._newest._replace(age=np.zeros_like(self._newest.age))  # type: ignore[no-any-return]

    def _take(self, state: State) -> None:
        state = jax.tree.map(np.asarray, state)
        if self._log_dir is not None:
            self._waiting.append(state)
        if state.rule.statistics.window >= self._newest.rule.statistics.window:
            self._newest = state._replace(logged=np.zeros_like(state.logged))
