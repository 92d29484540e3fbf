"""Stable-Baselines3: one call around the environments, one callback, a curriculum that is saved beside the model.

    env = with_curriculum([MyEnv] * 8, curriculum, reset_to, success="is_success")
    model = PPO("MlpPolicy", env).learn(100_000, callback=CurriculumCallback())

PPO, SAC, SAC with HerReplayBuffer and every other SB3 algorithm run unmodified.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from scout_rl.curriculum import Curriculum
from scout_rl.integrations.assignments import Assignments, Ticket
from scout_rl.integrations.gymnasium import CONTEXT, SUCCESS, TICKET, CurriculumEnv, TargetEnv
from scout_rl.integrations.success import Success
from scout_rl.integrations.vector import RemoteCells
from scout_rl.rules.rule import require

__all__ = [
    "CurriculumCallback",
    "CurriculumVecEnv",
    "assignments_of",
    "evaluate",
    "load",
    "save",
    "target_env",
    "with_curriculum",
]

EnvFn = Callable[[], gym.Env]


def with_curriculum(
    env: VecEnv | Sequence[EnvFn],
    curriculum: Curriculum | Assignments,
    reset_to: Any,
    success: Success,
    *,
    vec_env_cls: Callable[..., VecEnv] = DummyVecEnv,
    vec_env_kwargs: dict[str, Any] | None = None,
) -> CurriculumVecEnv:
    """Return a vector environment whose every episode starts from the curriculum's next cell.

    ``env`` is a list of functions that make an environment each, for any ``vec_env_cls`` (``SubprocVecEnv`` too),
    or a vector environment that runs in this process. ``reset_to`` and ``success``: see `CurriculumEnv`.
    """
    assignments = curriculum if isinstance(curriculum, Assignments) else Assignments(curriculum)
    if not isinstance(env, VecEnv):
        require(len(env) > 0 and all(callable(fn) for fn in env), "env must be a VecEnv or a list of functions")
        env_fns = [_env_fn(fn, assignments, reset_to, success) for fn in env]
        return CurriculumVecEnv(vec_env_cls(env_fns, **(vec_env_kwargs or {})), assignments)
    inner = env.unwrapped
    if not isinstance(inner, DummyVecEnv):
        raise ValueError(
            f"the environments of a {type(inner).__name__} are out of reach: pass the functions that make them, "
            f"with_curriculum(env_fns, ..., vec_env_cls={type(inner).__name__})"
        )
    require(not any(env.env_is_wrapped(CurriculumEnv)), "these environments have a curriculum already")
    inner.envs = [CurriculumEnv(e, assignments, reset_to, success) for e in inner.envs]
    return CurriculumVecEnv(env, assignments)


def target_env(env_fn: EnvFn, reset_to: Any, contexts: ArrayLike, success: Success) -> VecEnv:
    """Return an evaluation environment: these contexts in turn, always at level 0. SB3's EvalCallback takes it too."""
    return DummyVecEnv([lambda: Monitor(TargetEnv(env_fn(), reset_to, contexts, success))])


def evaluate(model: Any, env: VecEnv, *, deterministic: bool = True) -> dict[int, bool]:
    """Play every context of a `target_env` once; return the success of each context."""
    (contexts,) = env.get_attr("scout_contexts")
    env.env_method("scout_rewind")
    observation = env.reset()
    success: dict[int, bool] = {}
    for _ in contexts:
        done = np.zeros(1, bool)
        while not done[0]:
            action, _ = model.predict(observation, deterministic=deterministic)
            observation, _, done, infos = env.step(action)
        success[infos[0][CONTEXT]] = infos[0][SUCCESS]
    return success


def assignments_of(env: VecEnv) -> Assignments:
    """Return the assignments behind a vector environment that came from `with_curriculum`."""
    while not isinstance(env, CurriculumVecEnv):
        require(isinstance(env, VecEnvWrapper), "this environment has no curriculum: make it with with_curriculum")
        env = env.venv
    return env.assignments


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the model (``path.zip``) and, beside it, its curriculum with the cells in flight."""
    path = _stem(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    assignments_of(model.get_env()).save(_beside(path))
    model.save(path.with_name(path.name + ".zip"))


def load(algorithm: Any, path: str | os.PathLike[str], env: VecEnv, **kwargs: Any) -> Any:
    """Load what `save` wrote; ``learn(..., reset_num_timesteps=False)`` then continues.

    ``env`` comes from `with_curriculum`, with a new curriculum of the same rule and size. The cells that were in
    flight are issued again at its first reset.
    """
    path = _stem(path)
    assignments_of(env).load(_beside(path))
    return algorithm.load(path.with_name(path.name + ".zip"), env=env, **kwargs)


class CurriculumVecEnv(VecEnvWrapper):  # type: ignore[misc]
    """Carries the assignments, and sends cells to environments in other processes."""

    def __init__(self, venv: VecEnv, assignments: Assignments) -> None:
        super().__init__(venv)
        self.assignments = assignments
        self.remote_cells = RemoteCells(assignments, venv.get_attr("scout_process"), self._send)

    def reset(self) -> Any:
        """Reset all; episodes under way are given up."""
        cells = self.remote_cells
        cells.restarting(cells.envs)
        observations = self.venv.reset()
        self.reset_infos = self.venv.reset_infos
        for i in cells.envs:
            cells.started(i, self.venv.reset_infos[i][TICKET])
        cells.provide(cells.envs)  # the workers reset themselves at an episode's end: a cell must be there
        return observations

    def step_wait(self) -> Any:
        """Step all; outcomes are reported, and new cells sent, before this returns."""
        result = self.venv.step_wait()
        self.reset_infos = self.venv.reset_infos
        cells, dones, infos = self.remote_cells, result[2], result[3]
        if cells.envs and dones.any():
            done = [i for i in np.flatnonzero(dones).tolist() if i in cells.envs]
            for i in done:
                cells.ended(i, infos[i][TICKET], infos[i][SUCCESS])
                cells.started(i, self.venv.reset_infos[i][TICKET])
            cells.provide(done)
        return result

    def close(self) -> None:
        """Close; episodes under way are given up."""
        self.remote_cells.close()
        super().close()

    def _send(self, parcels: dict[int, list[Ticket]]) -> None:
        for i, tickets in parcels.items():
            self.venv.env_method("scout_receive", [tuple(t) for t in tickets], indices=[i])


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Logs where the curriculum stands, evaluates at level 0, and saves the curriculum beside the model.

    To the SB3 logger: ``scout/mean_frontier``, ``scout/share_at_target`` (contexts whose frontier is level 0),
    ``scout/windows``, ``scout/staleness`` (mean, in windows), ``scout/dropped_episodes``, and for every group
    ``scout/success_level0/<group>`` (training outcomes at level 0 since the last dump). With ``eval_env`` (of
    `target_env`) also ``scout/eval_success/<group>`` and the worst of them, ``scout/eval_worst_group``.

    ``evaluation_group`` labels the contexts; without it there is one group, ``all``. ``eval_every`` and
    ``save_every`` are in environment steps; ``save_every`` writes ``<save_path>_<steps>_steps`` with `save`, between
    an update and the next rollout, and once more when training ends.
    """

    def __init__(
        self,
        *,
        evaluation_group: ArrayLike | None = None,
        eval_env: VecEnv | None = None,
        eval_every: int = 10_000,
        deterministic: bool = True,
        save_path: str | os.PathLike[str] | None = None,
        save_every: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        require(save_every is None or save_path is not None, "save_every needs a save_path")
        self._labels = None if evaluation_group is None else np.asarray(evaluation_group)
        self._eval_env, self._eval_every, self._deterministic = eval_env, eval_every, deterministic
        self._save_path, self._save_every = save_path, save_every
        self._evaluated = self._saved = 0
        self.evaluations: list[tuple[int, dict[int, bool]]] = []
        """(environment steps, success of each context) of every evaluation."""

    def _on_training_start(self) -> None:
        self.assignments = assignments_of(self.training_env)
        n = self.assignments.curriculum.n_contexts
        if self._labels is None:
            self._labels = np.full(n, "all")
        require(
            self._labels.shape == (n,), f"evaluation_group has shape {self._labels.shape}, but there are {n} contexts"
        )
        self._evaluated = self._saved = self.num_timesteps
        self._outcomes, self._successes = self._at_target()

    def _on_rollout_start(self) -> None:
        if self._save_every is not None and self.num_timesteps - self._saved >= self._save_every:
            self._save()

    def _on_step(self) -> bool:
        if self._eval_env is not None and self.num_timesteps - self._evaluated >= self._eval_every:
            self._evaluate(self._eval_env)
        return True

    def _on_rollout_end(self) -> None:
        curriculum = self.assignments.curriculum
        frontier = curriculum.frontier
        if frontier is not None:
            self.logger.record("scout/mean_frontier", float(frontier.mean()))
            self.logger.record("scout/share_at_target", float((frontier == 0).mean()))
        self.logger.record("scout/windows", curriculum.windows)
        self.logger.record("scout/staleness", self.assignments.staleness.mean)
        self.logger.record("scout/dropped_episodes", self.assignments.dropped)
        self._log_level_0()

    def _on_training_end(self) -> None:
        if self._save_every is not None:
            self._save()

    def _log_level_0(self) -> None:
        outcomes, successes = self._at_target()
        new, succeeded = outcomes - self._outcomes, successes - self._successes
        for context in np.flatnonzero(new).tolist():
            for i in range(new[context]):
                self.logger.record_mean(f"scout/success_level0/{self._group(context)}", float(i < succeeded[context]))
        self._outcomes, self._successes = outcomes, successes

    def _at_target(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.assignments.outcomes[:, 0].copy(), self.assignments.successes[:, 0].copy()

    def _group(self, context: int) -> str:
        assert self._labels is not None
        return str(self._labels[context])

    def _evaluate(self, env: VecEnv) -> None:
        self._evaluated = self.num_timesteps
        success = evaluate(self.model, env, deterministic=self._deterministic)
        self.evaluations.append((self.num_timesteps, success))
        groups: dict[str, list[bool]] = {}
        for context, succeeded in success.items():
            groups.setdefault(self._group(context), []).append(succeeded)
        rates = {name: float(np.mean(values)) for name, values in groups.items()}
        for name, rate in rates.items():
            self.logger.record(f"scout/eval_success/{name}", rate)
        self.logger.record("scout/eval_worst_group", min(rates.values()))

    def _save(self) -> None:
        self._saved = self.num_timesteps
        save(self.model, f"{os.fspath(self._save_path or '')}_{self.num_timesteps}_steps")


def _env_fn(fn: EnvFn, assignments: Assignments, reset_to: Any, success: Success) -> EnvFn:
    return lambda: Monitor(CurriculumEnv(fn(), assignments, reset_to, success))


def _stem(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path.with_suffix("") if path.suffix == ".zip" else path


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".curriculum.npz")
