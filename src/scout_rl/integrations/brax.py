"""Brax and MuJoCo Playground: finished environments restart from a ladder, and the curriculum stays on the device.

    curriculum = BraxCurriculum(rules.Ability(), ladder, success="success", log_dir="runs/brax")
    ppo.train(environment=env, wrap_env_fn=curriculum.wrap, num_envs=4096, episode_length=200, ...)
    curriculum.frontier

``ladder`` is a state as the environment's ``reset`` returns it, with two more axes in front of every array:
``[contexts, levels]``. The wrapper takes the place of the library's autoreset, outside of its episode wrapper. The
curriculum's state travels in ``state.info``, so the trainer carries it through ``jit``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from scout_rl.files.extras import naming_extras
from scout_rl.integrations.device import State
from scout_rl.rules.cells import Array, Cells
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.brax", "brax"):
    import jax
    import jax.numpy as jnp

    from scout_rl.integrations.device.host_copy import HostCopy

INFO, METRIC = "scout", "scout_success"
"""The wrapper's entry in ``state.info``; the metric of evaluation: 1 at the step where an episode first succeeds."""
LAST_STEP = ("reward", "done", "metrics", "info")
"""Fields of a state that tell the trainer about an episode's last step; all others are those of the next start."""
DEVICES = "i"
"""Brax's name for the axis of devices."""


class BraxCurriculum(HostCopy):
    """The curriculum of one training; `wrap` is its ``wrap_env_fn``.

    ``success`` is a key of ``state.metrics`` or ``state.info``, or a function of the batched state. An episode succeeds
    if any of its steps does. ``window`` outcomes close a window; 0: a quarter of the environments. ``library_wrap`` is
    the function whose autoreset is replaced: Brax's own, or Playground's ``wrap_for_brax_training``. Entries of
    ``info`` that ``keep`` names go on over a restart.
    """

    def __init__(
        self,
        rule: Rule,
        ladder: Any,
        success: str | Callable[[Any], Array],
        *,
        seed: int = 0,
        window: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
        library_wrap: Callable[..., Any] | None = None,
        keep: tuple[str, ...] = ("rng",),
    ) -> None:
        shape = np.shape(ladder.done)
        require(len(shape) == 2, f"the ladder's done has shape {shape}, but must have [contexts, levels]")
        super().__init__(rule, *shape, seed=seed, window=window, log_dir=log_dir, name=name)
        self.ladder = jax.tree.map(jnp.asarray, ladder)
        self.success, self.keep, self._library_wrap, self._wrapped = success, keep, library_wrap, 0

    def wrap(self, env: Any, episode_length: int = 1000, action_repeat: int = 1, randomization_fn: Any = None) -> Any:
        """The ``wrap_env_fn``. A trainer calls it for the training environment, then for that of evaluation.

        Evaluation starts from level 0: environment i plays context i modulo the number of contexts.
        """
        require(self._wrapped < 2, "this curriculum has served one training: make another, which can `load` its save")
        self._check(env)
        lengths = {"episode_length": episode_length, "action_repeat": action_repeat}
        whole = (self._library_wrap or _brax_wrap())(env, **lengths, randomization_fn=randomization_fn)
        outer = type(whole).__name__
        require("AutoReset" in outer, f"the outermost wrapper of library_wrap is {outer}, but must be an autoreset")
        self._wrapped += 1
        kind = _TrainingEnv if self._wrapped == 1 else _LadderEnv
        return kind(whole.env, self, -(-episode_length // action_repeat))

    def succeeded(self, state: Any) -> Array:
        """Whether the last step succeeded, ``[environments]``."""
        value = self.success(state) if callable(self.success) else {**state.info, **state.metrics}[self.success]
        return jnp.asarray(value) > 0

    def _check(self, env: Any) -> None:
        """Refuse a ladder that is no batch of the environment's states, and a success that they do not have."""
        shape = self.n_contexts, self.n_levels
        keys = jax.random.split(jax.random.PRNGKey(0), shape)
        reset = jax.eval_shape(jax.vmap(jax.vmap(env.reset)), keys)
        (own, own_tree), (rungs, tree) = (jax.tree_util.tree_flatten_with_path(t) for t in (reset, self.ladder))
        require(tree == own_tree, f"the ladder is {tree}, but the environment's reset returns {own_tree}")
        for (path, leaf), (_, rung) in zip(own, rungs, strict=True):
            where = f"{jax.tree_util.keystr(path)} is {rung.dtype}{list(rung.shape)}"
            same = (leaf.shape, leaf.dtype) == (rung.shape, rung.dtype)
            require(same, f"the ladder's {where}, but must be {leaf.dtype}{list(leaf.shape)}, as reset returns it")
        known = sorted({*reset.metrics, *reset.info})
        named = callable(self.success) or self.success in known
        require(named, f"no metric and no info of the environment is called {self.success!r}; there are {known}")


class _Carried(NamedTuple):
    """The wrapper's part of ``state.info``."""

    cells: State | Cells
    succeeded: Array
    """``[environments]``: whether the episode has succeeded so far."""


class _LadderEnv:
    """A batch of environments whose finished episodes restart from the ladder. This one is for evaluation."""

    def __init__(self, env: Any, curriculum: BraxCurriculum, longest: int) -> None:
        self.env, self.curriculum, self.longest = env, curriculum, longest

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["env"], name)

    def reset(self, rng: Array) -> Any:
        """Every environment at its first cell."""
        nobody, cells = jnp.zeros(len(rng), bool), self._first(len(rng))
        state = self._placed(self._informed(self.env.reset(rng), ~nobody, cells), ~nobody, cells)
        return self._with(state, _Carried(cells, nobody), nobody)

    def step(self, state: Any, action: Array) -> Any:
        """Who is done gets the next start. Its ``info`` follows one step later: a trainer reads that of the last."""
        cells, before = state.info[INFO]
        state = self._informed(state, state.done > 0, cells)
        state = self.env.step(state.replace(done=jnp.zeros_like(state.done)), action)
        done, succeeded = state.done > 0, before | self.curriculum.succeeded(state)
        cells = self._next(cells, done, succeeded)
        return self._with(self._placed(state, done, cells), _Carried(cells, succeeded & ~done), succeeded & ~before)

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

    def _with(self, state: Any, carried: _Carried, first_success: Array) -> Any:
        metrics = {**state.metrics, METRIC: first_success.astype(jnp.float32)}
        return state.replace(info={**state.info, INFO: carried}, metrics=metrics)

    def _first(self, n: int) -> Any:
        return Cells(jnp.arange(n) % self.curriculum.n_contexts, jnp.zeros(n, int))

    def _next(self, cells: Any, done: Array, succeeded: Array) -> Any:
        return cells


class _TrainingEnv(_LadderEnv):
    """The curriculum chooses the cells and takes the outcomes."""

    def _first(self, n: int) -> Any:
        try:
            devices = int(jax.lax.axis_size(DEVICES))
        except NameError:
            devices = 1
        require(devices == 1, f"{devices} devices would have {devices} curricula: train with max_devices_per_host=1")
        return self.curriculum.begun(n, self.longest)

    def _next(self, cells: Any, done: Array, succeeded: Array) -> Any:
        return self.curriculum.stepped(cells, done, succeeded)


def _brax_wrap() -> Any:
    with naming_extras("BraxCurriculum"):
        from brax.envs.wrappers.training import wrap
    return wrap


def _restored(rungs: Any, now: Any, where: Array, cells: Any) -> Any:
    """``now``, with the ladder's values ``where`` it is true; arrays that the environments share stay."""

    def leaf(rung: Array, x: Array) -> Array:
        if x.shape[:1] != where.shape:
            return x
        return jnp.where(where.reshape(-1, *[1] * (x.ndim - 1)), rung[cells.context, cells.level], x)

    return jax.tree.map(leaf, rungs, now)
