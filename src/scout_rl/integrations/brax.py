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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scout_rl.files.extras import naming_extras
from scout_rl.rules.cells import Array
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.brax", "brax"):
    import jax
    import jax.numpy as jnp

    from scout_rl.integrations.brax_envs import INFO, METRIC, EveryStep, LadderEnv, TrainingEnv
    from scout_rl.integrations.device.host_copy import HostCopy

__all__ = ["INFO", "METRIC", "BraxCurriculum"]


class BraxCurriculum(HostCopy):
    """The curriculum of one training; `wrap` is its ``wrap_env_fn``.

    ``success`` is a key of ``state.metrics`` or ``state.info``, or a function of the batched state. An episode succeeds
    if any of its steps does, also one that ``action_repeat`` repeats. ``window`` outcomes close a window; 0: one per
    environment. ``log`` is how many windows an epoch may close and still be recorded; 0: as many as hold a million
    outcomes. ``oracle_group`` is one label per context, for rules that use them. ``library_wrap`` is the function whose
    autoreset is replaced: Brax's own, or Playground's ``wrap_for_brax_training``. Entries of ``info`` that ``keep``
    names go on over a restart.
    """

    def __init__(
        self,
        rule: Rule,
        ladder: Any,
        success: str | Callable[[Any], Array],
        *,
        seed: int = 0,
        window: int = 0,
        log: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
        oracle_group: ArrayLike | None = None,
        library_wrap: Callable[..., Any] | None = None,
        keep: tuple[str, ...] = ("rng",),
    ) -> None:
        shape = np.shape(ladder.done)
        require(len(shape) == 2, f"the ladder's done has shape {shape}, but must have [contexts, levels]")
        about: dict[str, Any] = {"log_dir": log_dir, "name": name, "oracle_group": oracle_group}
        super().__init__(rule, *shape, seed=seed, window=window, log=log, **about)
        self.ladder = jax.tree.map(jnp.asarray, ladder)
        self.success, self.keep, self._library_wrap = success, keep, library_wrap
        self.training: TrainingEnv | None = None
        """The environment that was last wrapped for training."""
        self._evaluated = False

    def wrap(self, env: Any, episode_length: int = 1000, action_repeat: int = 1, randomization_fn: Any = None) -> Any:
        """The ``wrap_env_fn``. It wraps for training until a training environment was reset, and then for evaluation.

        That is the order of Brax's PPO and SAC. So a training that failed before its first reset can be tried again.
        Evaluation starts from level 0: environment i plays context i modulo the number of contexts.
        """
        require(not self._evaluated, "this curriculum has served one training: make another, which can `load` its save")
        self._check(env)
        lengths = {"episode_length": episode_length, "action_repeat": action_repeat}
        whole = (self._library_wrap or _brax_wrap())(env, **lengths, randomization_fn=randomization_fn)
        outer = type(whole).__name__
        require("AutoReset" in outer, f"the outermost wrapper of library_wrap is {outer}, but must be an autoreset")
        repeats = action_repeat > 1
        if repeats:
            where, inner = "the wrapper inside of library_wrap's autoreset", type(whole.env).__name__
            require("Episode" in inner, f"{where} is {inner}, but must be the episode wrapper, which repeats an action")
            whole.env.env = EveryStep(whole.env.env, self.succeeded)
        longest = -(-episode_length // action_repeat)
        if self._begun:
            self._evaluated = True
            return LadderEnv(whole.env, self, longest, repeats)
        self.training = TrainingEnv(whole.env, self, longest, repeats)
        return self.training

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


def _brax_wrap() -> Any:
    with naming_extras("BraxCurriculum"):
        from brax.envs.wrappers.training import wrap
    return wrap
