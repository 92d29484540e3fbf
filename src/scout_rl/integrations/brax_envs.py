"""The batches of environments that `BraxCurriculum.wrap` makes: for training and for evaluation."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scout_rl.files.extras import naming_extras
from scout_rl.rules.cells import Array, Cells
from scout_rl.rules.rule import require

if TYPE_CHECKING:
    from scout_rl.integrations.brax import BraxCurriculum

with naming_extras("scout_rl.integrations.brax", "brax"):
    import jax
    import jax.numpy as jnp

    from scout_rl.integrations.device.host_copy import Carried, HostCopy

INFO, METRIC = "scout", "scout_success"
"""The wrapper's entry in ``state.info``; the metric of evaluation: 1 at the step where an episode first succeeds."""
REPEATED = "scout_repeated"
"""The entry of ``state.info`` that goes through the repeated steps of one action: whether one of them succeeded."""
LAST_STEP = ("reward", "done", "metrics", "info")
"""Fields of a state that tell the trainer about an episode's last step; all others are those of the next start."""
AFTER_THE_LAST = ("truncation", "episode_done")
"""Entries of ``info`` that the episode wrapper sets after the last repetition; before that they are an older step's."""
DEVICES = "i"
"""Brax's name for the axis of devices; only its training has it."""


class LadderEnv:
    """A batch of environments whose finished episodes restart from the ladder. This one is for evaluation."""

    def __init__(self, env: Any, curriculum: BraxCurriculum, longest: int, repeats: bool) -> None:
        self.env, self.curriculum, self.longest, self.repeats = env, curriculum, longest, repeats

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["env"], name)

    def reset(self, rng: Array) -> Any:
        """Every environment at its first cell."""
        self._check_devices()
        nobody, cells = jnp.zeros(len(rng), bool), self._first(len(rng))
        state = self._placed(self._informed(self.env.reset(rng), ~nobody, cells), ~nobody, cells)
        return self._with(state, cells, nobody, nobody)

    def step(self, state: Any, action: Array) -> Any:
        """Who is done gets the next start. Its ``info`` follows one step later: a trainer reads that of the last."""
        self._check_devices()
        cells, before = state.info[INFO].cells, state.info[INFO].succeeded
        state, nobody = self._informed(state, state.done > 0, cells), jnp.zeros_like(before)
        repeated = {REPEATED: nobody} if self.repeats else {}
        info = {**state.info, **repeated}
        state = self.env.step(state.replace(done=jnp.zeros_like(state.done), info=info), action)
        before_last = state.info.pop(REPEATED, nobody)
        done, succeeded = state.done > 0, before | before_last | self.curriculum.succeeded(state)
        cells = self._next(cells, done, succeeded)
        return self._with(self._placed(state, done, cells), cells, succeeded & ~done, succeeded & ~before)

    def _placed(self, state: Any, where: Array, cells: Any) -> Any:
        """Simulator and observation at the start of the cells."""
        fields, ladder = (name for name in vars(state) if name not in LAST_STEP), self.curriculum.ladder
        return state.replace(**{n: _restored(getattr(ladder, n), getattr(state, n), where, cells) for n in fields})

    def _informed(self, state: Any, where: Array, cells: Any) -> Any:
        """The environment's own ``info`` at the start of the cells; what is the wrapper's is out of its way."""
        info = {name: value for name, value in state.info.items() if name != INFO}
        for name, rungs in self.curriculum.ladder.info.items():
            if name not in self.curriculum.keep:
                info[name] = _restored(rungs, info[name], where, cells)
        if "steps" in info:  # the episode wrapper's clock
            info["steps"] = jnp.where(where, 0, info["steps"])
        return state.replace(info=info, metrics={name: m for name, m in state.metrics.items() if name != METRIC})

    def _with(self, state: Any, cells: Any, succeeded: Array, first_success: Array) -> Any:
        metrics = {**state.metrics, METRIC: first_success.astype(jnp.float32)}
        return state.replace(info={**state.info, INFO: Carried(cells, succeeded, self._owner)}, metrics=metrics)

    def _check_devices(self) -> None:
        advice = "make another curriculum, which can load this one's save"
        require(_devices() is None, f"evaluation's environment is trained on, after a training that failed: {advice}")

    @property
    def _owner(self) -> weakref.ref[HostCopy] | None:
        """Who sees the cells when the trainer returns them."""
        return None

    def _first(self, n: int) -> Any:
        return Cells(jnp.arange(n) % self.curriculum.n_contexts, jnp.zeros(n, int))

    def _next(self, cells: Any, done: Array, succeeded: Array) -> Any:
        return cells


class TrainingEnv(LadderEnv):
    """The curriculum chooses the cells and takes the outcomes."""

    @property
    def _owner(self) -> weakref.ref[HostCopy] | None:
        return weakref.ref(self.curriculum)

    def _check_devices(self) -> None:
        devices = _devices() or 1
        require(devices == 1, f"{devices} devices would have {devices} curricula: train with max_devices_per_host=1")

    def _first(self, n: int) -> Any:
        newest = self.curriculum.training is self
        require(newest, "another environment was wrapped before this one's first reset: reset it first, as PPO does")
        return self.curriculum.begun(n, self.longest)

    def _next(self, cells: Any, done: Array, succeeded: Array) -> Any:
        return self.curriculum.stepped(cells, done, succeeded)


class EveryStep:
    """Inside of the episode wrapper, which repeats an action: it sees the success of every repeated step."""

    def __init__(self, env: Any, succeeded: Callable[[Any], Array]) -> None:
        self.env, self.succeeded = env, succeeded

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["env"], name)

    def step(self, state: Any, action: Array) -> Any:
        """One repetition."""
        info = dict(state.info)
        before = info.pop(REPEATED)
        state = self.env.step(state.replace(info=info), action)
        unknown = {name: jnp.zeros_like(state.info[name]) for name in AFTER_THE_LAST if name in state.info}
        now = self.succeeded(state.replace(info={**state.info, **unknown}))
        return state.replace(info={**state.info, REPEATED: before | now})


def _devices() -> int | None:
    """The size of Brax's axis of devices; None outside of its training."""
    try:
        return int(jax.lax.axis_size(DEVICES))
    except NameError:
        return None


def _restored(rungs: Any, now: Any, where: Array, cells: Any) -> Any:
    """``now``, with the ladder's values ``where`` it is true; arrays that the environments share stay."""

    def leaf(rung: Array, x: Array) -> Array:
        if x.shape[:1] != where.shape:
            return x
        return jnp.where(where.reshape(-1, *[1] * (x.ndim - 1)), rung[cells.context, cells.level], x)

    return jax.tree.map(leaf, rungs, now)
