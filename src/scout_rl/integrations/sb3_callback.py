"""The SB3 callback: logs the curriculum, evaluates from the target start, saves."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from scout_rl.integrations.sb3_evaluation import (
    by_context,
    check_normalised_alike,
    contexts_of,
    copy_statistics,
    play,
)
from scout_rl.integrations.sb3_saving import save
from scout_rl.integrations.sb3_vec_env import assignments_of
from scout_rl.rules.rule import require

ALL = "all"
"""The group of every context if there are no labels."""


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Logs the curriculum, evaluates at level 0, and saves the curriculum beside the model.

    The SB3 logger gets ``scout/mean_frontier``, ``scout/share_at_target`` (share of contexts with frontier 0),
    ``scout/windows``, ``scout/staleness`` (mean, in windows), ``scout/dropped_episodes``, and per group
    ``scout/success_level0/<group>`` (training outcomes at level 0 since the last dump). With an ``eval_env`` from
    `target_env` it also gets ``scout/eval_success/<group>`` and the worst of them, ``scout/eval_worst_group``. If both
    environments are in a VecNormalize, ``eval_env`` gets the statistics of training before each evaluation. The
    curriculum records every evaluation for ``scout report``, at most one per window.

    ``evaluation_group`` labels the training contexts; the default is one group, ``all``. ``eval_group`` labels the
    contexts of ``eval_env``, in its order. Without it training contexts keep their label, and held-out contexts are
    refused. ``eval_every`` and ``save_every`` are in environment steps. `save` writes ``<save_path>_<steps>_steps`` at
    the end of training; with ``save_every`` also during training, between an update and the next rollout.
    """

    def __init__(
        self,
        *,
        evaluation_group: ArrayLike | None = None,
        eval_env: VecEnv | None = None,
        eval_group: ArrayLike | None = None,
        eval_every: int = 10_000,
        deterministic: bool = True,
        save_path: str | os.PathLike[str] | None = None,
        save_every: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        require(save_every is None or save_path is not None, "save_every needs a save_path")
        require(eval_group is None or eval_env is not None, "eval_group labels the contexts of eval_env: there is none")
        self._labels = None if evaluation_group is None else np.asarray(evaluation_group)
        self._eval_labels = None if eval_group is None else np.asarray(eval_group)
        self._eval_env, self._eval_every, self._deterministic = eval_env, eval_every, deterministic
        self._save_path, self._save_every = save_path, save_every
        self._evaluated = self._saved = 0
        self.evaluations: list[tuple[int, dict[int, float]]] = []
        """Per evaluation: environment steps, and the success of each context as from `evaluate`."""

    def _on_training_start(self) -> None:
        self.assignments = assignments_of(self.training_env)
        n = self.assignments.curriculum.n_contexts
        if self._labels is not None:
            shape = self._labels.shape
            require(shape == (n,), f"evaluation_group has shape {shape}, but there are {n} contexts")
        if self._eval_env is not None:
            check_normalised_alike(self.training_env, self._eval_env)
            self._eval_groups = self._groups_of(contexts_of(self._eval_env))
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
        if self._save_path is not None:
            self._save()

    def _log_level_0(self) -> None:
        outcomes, successes = self._at_target()
        new, succeeded = outcomes - self._outcomes, successes - self._successes
        for context in np.flatnonzero(new).tolist():
            group = ALL if self._labels is None else str(self._labels[context])
            for i in range(new[context]):
                self.logger.record_mean(f"scout/success_level0/{group}", float(i < succeeded[context]))
        self._outcomes, self._successes = outcomes, successes

    def _at_target(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.assignments.outcomes[:, 0].copy(), self.assignments.successes[:, 0].copy()

    def _groups_of(self, contexts: list[int]) -> list[str]:
        """The group of every evaluation episode; a context without a label is refused."""
        if self._eval_labels is not None:
            shape = self._eval_labels.shape
            require(
                shape == (len(contexts),), f"eval_group has shape {shape}, but eval_env plays {len(contexts)} contexts"
            )
            return [str(label) for label in self._eval_labels]
        if self._labels is None:
            return [ALL] * len(contexts)
        n = len(self._labels)
        for context in contexts:
            require(
                0 <= context < n,
                f"eval_env plays context {context}, but evaluation_group labels the {n} training contexts only: label "
                f"the contexts of eval_env, in its order, with eval_group",
            )
        return [str(self._labels[context]) for context in contexts]

    def _evaluate(self, env: VecEnv) -> None:
        self._evaluated = self.num_timesteps
        copy_statistics(self.training_env, env)
        played = play(self.model, env, deterministic=self._deterministic)
        self.evaluations.append((self.num_timesteps, by_context(played)))
        curriculum = self.assignments.curriculum
        if curriculum.evaluated != curriculum.windows:  # equal: this window has its evaluation
            curriculum.evaluation([success for _, success in played], self._eval_groups)
        groups: dict[str, list[bool]] = {}
        for group, (_, success) in zip(self._eval_groups, played, strict=True):
            groups.setdefault(group, []).append(success)
        rates = {name: float(np.mean(values)) for name, values in groups.items()}
        for name, rate in rates.items():
            self.logger.record(f"scout/eval_success/{name}", rate)
        self.logger.record("scout/eval_worst_group", min(rates.values()))

    def _save(self) -> None:
        self._saved = self.num_timesteps
        save(self.model, f"{os.fspath(self._save_path or '')}_{self.num_timesteps}_steps")
