"""Stable-Baselines3: one call around the environments, one callback, and saves to continue from.

    env = with_curriculum([MyEnv] * 8, curriculum, reset_to, success="is_success")
    model = PPO("MlpPolicy", env).learn(100_000, callback=CurriculumCallback())

PPO, SAC, SAC with HerReplayBuffer and every other SB3 algorithm run unmodified.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scout_rl.codecs.codec import Codec
from scout_rl.curriculum import Curriculum
from scout_rl.curriculum import checks as outcome_checks
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal

with naming_extras("scout_rl.integrations.sb3", "sb3"):
    import gymnasium as gym
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from scout_rl.integrations import sb3_saves
from scout_rl.integrations.assignments import LIKELY_CAUSE, Assignments, Ticket
from scout_rl.integrations.gymnasium import CONTEXT, SUCCESS, TICKET, CurriculumEnv, TargetEnv, check_rule
from scout_rl.integrations.starts import check_shape, reset_operator
from scout_rl.integrations.vector import RemoteCells, ended_unseen
from scout_rl.ladders.success import Success
from scout_rl.rules.rule import require

__all__ = [
    "CurriculumCallback",
    "CurriculumVecEnv",
    "assignments_of",
    "evaluate",
    "latest_save",
    "load",
    "load_latest",
    "save",
    "target_env",
    "with_curriculum",
]

EnvFn = Callable[[], gym.Env]
ALL = "all"
"""The group of every context if there are no labels."""


def with_curriculum(
    env: VecEnv | Sequence[EnvFn],
    curriculum: Curriculum | Assignments,
    reset_to: Any,
    success: Success,
    *,
    codec: Codec | None = None,
    vec_env_cls: Callable[..., VecEnv] = DummyVecEnv,
    vec_env_kwargs: dict[str, Any] | None = None,
) -> CurriculumVecEnv:
    """Return a vector environment whose every episode starts from the curriculum's next cell.

    ``env`` is a list of functions that each make an environment, for any ``vec_env_cls`` (``SubprocVecEnv`` too), or a
    vector environment of this process. ``reset_to``, ``success`` and ``codec`` are those of `CurriculumEnv`.
    """
    assignments = curriculum if isinstance(curriculum, Assignments) else Assignments(curriculum)
    check_rule(assignments.curriculum)  # also here, because a worker's refusal arrives as a broken pipe
    check_shape(reset_operator(reset_to, codec), assignments.curriculum)

    def wrap(inner: gym.Env) -> CurriculumEnv:
        return CurriculumEnv(inner, assignments, reset_to, success, codec=codec)

    if not isinstance(env, VecEnv):
        require(len(env) > 0 and all(callable(fn) for fn in env), "env must be a VecEnv or a list of functions")
        env_fns = [lambda fn=fn: Monitor(wrap(fn())) for fn in env]
        return CurriculumVecEnv(vec_env_cls(env_fns, **(vec_env_kwargs or {})), assignments)
    inner = env.unwrapped
    if not isinstance(inner, DummyVecEnv):
        raise Refusal(
            f"the environments of a {type(inner).__name__} are out of reach: pass the functions that make them, "
            f"with_curriculum(env_fns, ..., vec_env_cls={type(inner).__name__})"
        )
    require(not any(env.env_is_wrapped(CurriculumEnv)), "these environments have a curriculum already")
    inner.envs = [wrap(e) for e in inner.envs]
    return CurriculumVecEnv(env, assignments)


def assignments_of(env: VecEnv) -> Assignments:
    """Return the assignments behind a vector environment that came from `with_curriculum`."""
    while not isinstance(env, CurriculumVecEnv):
        require(isinstance(env, VecEnvWrapper), "this environment has no curriculum: make it with with_curriculum")
        env = env.venv
    return env.assignments


class _InfosWrapper(VecEnvWrapper):  # type: ignore[misc]
    """Passes the infos of resets on, which SB3's own wrapper does not."""

    def reset(self) -> Any:
        """Reset."""
        observations = self.venv.reset()
        self.reset_infos = self.venv.reset_infos
        return observations

    def step_wait(self) -> Any:
        """Step."""
        result = self.venv.step_wait()
        self.reset_infos = self.venv.reset_infos
        return result


class CurriculumVecEnv(_InfosWrapper):
    """Holds the assignments, and sends cells to environments in other processes."""

    def __init__(self, venv: VecEnv, assignments: Assignments) -> None:
        super().__init__(venv)
        self.assignments = assignments
        self.remote_cells = RemoteCells(assignments, venv.get_attr("scout_process"), self._send)

    def reset(self) -> Any:
        """Reset all; episodes under way are dropped."""
        cells = self.remote_cells
        cells.restarting(cells.envs)
        observations = super().reset()
        for i in cells.envs:
            cells.started(i, self.reset_infos[i][TICKET])
        cells.provide(cells.envs)  # a worker resets itself at an episode's end and needs a cell then
        return observations

    def step_wait(self) -> Any:
        """Step all, report outcomes, send new cells."""
        result = super().step_wait()
        cells, dones, infos = self.remote_cells, result[2], result[3]
        if cells.envs and dones.any():
            done = [i for i in np.flatnonzero(dones).tolist() if i in cells.envs]
            for i in done:
                if SUCCESS not in infos[i]:
                    raise ended_unseen(i, "CurriculumVecEnv")
                cells.ended(i, infos[i][TICKET], infos[i][SUCCESS])
                cells.started(i, self.reset_infos[i][TICKET])
            cells.provide(done)
        return result

    def close(self) -> None:
        """Close; episodes under way are dropped."""
        self.remote_cells.close()
        super().close()

    def _send(self, tickets: dict[int, Ticket]) -> None:
        for i, ticket in tickets.items():
            self.venv.env_method("scout_receive", [tuple(ticket)], indices=[i])


def save(model: Any, path: str | os.PathLike[str], *, replay: bool = True) -> None:
    """Write one file, ``path.zip``: the model, its curriculum with the cells in flight, and what both need to continue.

    That is the statistics of a VecNormalize and, for off-policy models such as SAC, the replay: as many bytes as its
    filled part takes in memory (a million steps of 30 numbers: about 300 MB). ``replay=False`` leaves it out; training
    then continues with an empty replay. A kill while it writes leaves the old file. SB3's own ``load`` reads the file
    too, without our part.
    """
    sb3_saves.write(model, assignments_of(model.get_env()), _zip_file(path), replay=replay)


def load(algorithm: Any, path: str | os.PathLike[str], env: VecEnv, **kwargs: Any) -> Any:
    """Load what `save` wrote; ``learn(..., reset_num_timesteps=False)`` then continues.

    ``env`` comes from `with_curriculum`, with a new curriculum of the same rule and size. Its first reset issues the
    cells in flight again. ``kwargs`` are those of ``algorithm.load``, which unpickles: load only files that you trust.
    """
    return sb3_saves.read(algorithm, assignments_of(env), _zip_file(path), env, **kwargs)


def load_latest(algorithm: Any, save_path: str | os.PathLike[str], env: VecEnv, **kwargs: Any) -> Any:
    """`load` the newest complete save of ``CurriculumCallback(save_path=...)``; refuse if there is none.

    One script for the first start and for every later one:

        if sb3.latest_save("runs/model"):
            model = sb3.load_latest(PPO, "runs/model", env)
        else:
            model = PPO("MlpPolicy", env)
        callback = CurriculumCallback(save_path="runs/model", save_every=10_000)
        model.learn(1_000_000 - model.num_timesteps, callback=callback, reset_num_timesteps=False)
    """
    latest = latest_save(save_path)
    if latest is None:
        folder, pattern = Path(save_path).parent, sb3_saves.pattern(Path(save_path))
        raise Refusal(f"{folder} holds no complete save {pattern}: nothing to continue from, so begin a new training")
    return load(algorithm, latest, env, **kwargs)


def latest_save(save_path: str | os.PathLike[str]) -> Path | None:
    """The newest file of ``CurriculumCallback(save_path=...)``, or None. A file that is cut off does not count."""
    return next((file for _, file in sb3_saves.saves(Path(save_path))), None)


def _zip_file(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    return file if file.suffix == ".zip" else file.with_name(f"{file.name}.zip")


def target_env(
    env_fn: EnvFn, reset_to: Any, contexts: ArrayLike, success: Success, *, codec: Codec | None = None
) -> VecEnv:
    """Return an evaluation environment: these contexts in turn, always at level 0. SB3's EvalCallback accepts it."""
    env = DummyVecEnv([lambda: Monitor(TargetEnv(env_fn(), reset_to, contexts, success, codec=codec))])
    return _InfosWrapper(env)  # SB3 wants as many wrappers as around training environments


def evaluate(model: Any, env: VecEnv, *, deterministic: bool = True) -> dict[int, float]:
    """Play every context of a `target_env`; return the success of each context.

    That is True or False, or the share of successes if the environment lists a context several times. An ``env`` in a
    VecNormalize needs the statistics of training; `CurriculumCallback` copies them.
    """
    trained_in = model.get_env() if hasattr(model, "get_env") else None
    require(
        trained_in is None or _normaliser(trained_in) is None or _normaliser(env) is not None,
        "the model was trained on normalised observations, but the evaluation environment is in no VecNormalize",
    )
    return _by_context(_play(model, env, deterministic=deterministic))


def _play(model: Any, env: VecEnv, *, deterministic: bool) -> list[tuple[int, bool]]:
    """Play one episode per entry of the environment's contexts; return (context, success) of each."""
    contexts = _contexts_of(env)
    env.env_method("scout_rewind")
    observation = env.reset()
    played = []
    for _ in contexts:
        done = np.zeros(1, bool)
        while not done[0]:
            action, _ = model.predict(observation, deterministic=deterministic)
            observation, _, done, infos = env.step(action)
        if SUCCESS not in infos[0]:
            raise RuntimeError(f"an episode ended without the info {SUCCESS!r}: {LIKELY_CAUSE.format('TargetEnv')}")
        played.append((infos[0][CONTEXT], infos[0][SUCCESS]))
    return played


def _by_context(played: list[tuple[int, bool]]) -> dict[int, float]:
    """Return the success of each context: True or False, or the share if it was played several times."""
    outcomes: dict[int, list[bool]] = {}
    for context, success in played:
        outcomes.setdefault(context, []).append(success)
    return {context: rows[0] if len(rows) == 1 else float(np.mean(rows)) for context, rows in outcomes.items()}


def _contexts_of(env: VecEnv) -> list[int]:
    """Return the contexts that a `target_env` plays; refuse any other environment."""
    try:
        contexts = env.get_attr("scout_contexts")
    except AttributeError:
        contexts = []
    require(len(contexts) == 1, "the evaluation environment must come from target_env")
    return list(contexts[0])


def _normaliser(env: VecEnv) -> VecNormalize | None:
    """Return the wrapper that normalises observations, if any."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecNormalize) and env.norm_obs:
            return env
        env = env.venv
    return None


class CurriculumCallback(BaseCallback):  # type: ignore[misc]
    """Logs the curriculum, evaluates at level 0, and saves the training.

    The SB3 logger gets ``scout/mean_frontier``, ``scout/share_at_target`` (share of contexts with frontier 0),
    ``scout/windows``, ``scout/staleness`` (mean, in windows), ``scout/dropped_episodes``, and per group
    ``scout/success_level0/<group>`` (training outcomes at level 0 since the last dump). With an ``eval_env`` from
    `target_env` it also gets ``scout/eval_success/<group>`` and the worst of them, ``scout/eval_worst_group``. If both
    environments are in a VecNormalize, ``eval_env`` gets the statistics of training before each evaluation. The
    curriculum records every evaluation for ``scout report``, at most one per window.

    Watch these keys, not SB3's ``rollout/success_rate``: that one counts episodes from all levels, so it is high while
    starts are easy. The log says so once.

    ``evaluation_group`` labels the training contexts; the default is one group, ``all``. ``eval_group`` labels the
    contexts of ``eval_env``, in its order. Without it training contexts keep their label, and held-out contexts are
    refused. ``eval_every`` and ``save_every`` are in environment steps.

    `save` writes ``<save_path>_<steps>_steps.zip`` at the end of training. With ``save_every`` it also saves at the
    start and during training, between an update and the next rollout. The newest ``keep`` files stay (None: all); an
    older one is removed when the newer ones are on the disk. ``replay`` is that of `save`. `load_latest` continues.
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
        keep: int | None = 2,
        replay: bool = True,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        require(save_every is None or save_path is not None, "save_every needs a save_path")
        require(keep is None or keep >= 1, f"keep is {keep}, but at least the newest save must stay (None: all)")
        require(eval_group is None or eval_env is not None, "eval_group labels the contexts of eval_env: there is none")
        self._labels = None if evaluation_group is None else np.asarray(evaluation_group)
        self._eval_labels = None if eval_group is None else np.asarray(eval_group)
        self._eval_env, self._eval_every, self._deterministic = eval_env, eval_every, deterministic
        self._save_path, self._save_every = None if save_path is None else Path(save_path), save_every
        self._keep, self._replay = keep, replay
        self._said_what_to_watch = False
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
            verb = {True: "normalises observations", False: "does not"}
            training, evaluation = (_normaliser(env) is not None for env in (self.training_env, self._eval_env))
            require(
                training == evaluation,
                f"the training environment {verb[training]} and the evaluation environment {verb[evaluation]}: put "
                f"both into a VecNormalize, or neither",
            )
            self._eval_groups = self._groups_of(_contexts_of(self._eval_env))
        self._evaluated = self._saved = self.num_timesteps
        self._outcomes, self._successes = self._at_target()
        if self._save_path is not None:
            self._check_saves(self._save_path)
            if self._save_every is not None:
                self._save()  # a training that is killed early can continue too, and its records with it

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
        outcomes, successes = self._at_target()
        new, succeeded = outcomes - self._outcomes, successes - self._successes
        for context in np.flatnonzero(new).tolist():
            group = ALL if self._labels is None else str(self._labels[context])
            for i in range(new[context]):
                self.logger.record_mean(f"scout/success_level0/{group}", float(i < succeeded[context]))
        self._outcomes, self._successes = outcomes, successes
        self._say_what_to_watch()

    def _say_what_to_watch(self) -> None:
        """Say once, where SB3 prints its table, that its success rate is over all levels."""
        if self._said_what_to_watch or not self.model.ep_success_buffer or not self.assignments.outcomes[:, 1:].any():
            return
        self._said_what_to_watch = True
        instead = "success_level0/* (give an eval_env for more)" if self._eval_env is None else "eval_success/*"
        self.logger.info(f"rollout/success_rate counts episodes from all levels, easy ones too: watch scout/{instead}")

    def _on_training_end(self) -> None:
        if self._save_path is not None:
            self._save()

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
        trained, evaluated = _normaliser(self.training_env), _normaliser(env)
        if trained is not None and evaluated is not None:
            evaluated.obs_rms, evaluated.ret_rms = deepcopy(trained.obs_rms), deepcopy(trained.ret_rms)
            evaluated.training = False
        played = _play(self.model, env, deterministic=self._deterministic)
        self.evaluations.append((self.num_timesteps, _by_context(played)))
        curriculum, outcomes = self.assignments.curriculum, [success for _, success in played]
        if curriculum.evaluated != curriculum.windows:  # equal: this window has its evaluation
            curriculum.evaluation(outcomes, self._eval_groups)
        rates = outcome_checks.evaluation(curriculum.windows, outcomes, self._eval_groups)["groups"]
        for name, rate in rates.items():
            self.logger.record(f"scout/eval_success/{name}", rate)
        self.logger.record("scout/eval_worst_group", min(rates.values()))

    def _check_saves(self, save_path: Path) -> None:
        """Refuse, before training, what could not be saved or would be mistaken for another training's save."""
        buffer = sb3_saves.replay_of(self.model)
        if self._replay and buffer is not None:
            sb3_saves.check_replay(buffer)
        steps, file = next(iter(sb3_saves.saves(save_path)), (0, None))
        if steps > self.num_timesteps:
            raise Refusal(
                f"{file} is the save of a training that is further than this one ({self.num_timesteps} steps): "
                "continue it with load_latest and learn(..., reset_num_timesteps=False), or choose another save_path"
            )

    def _save(self) -> None:
        assert self._save_path is not None
        self._saved = self.num_timesteps
        save(self.model, sb3_saves.save_file(self._save_path, self.num_timesteps), replay=self._replay)
        if self._keep is not None:
            sb3_saves.remove_older(self._save_path, self._keep)
