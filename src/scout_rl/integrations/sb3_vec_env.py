"""SB3 vector environments whose every episode starts from a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from scout_rl.codecs.codec import Codec
from scout_rl.curriculum import Curriculum
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.assignments import Assignments, Ticket
from scout_rl.integrations.gymnasium import SUCCESS, TICKET, CurriculumEnv, check_rule
from scout_rl.integrations.starts import check_shape, reset_operator
from scout_rl.integrations.success import Success
from scout_rl.integrations.vector import RemoteCells, ended_unseen
from scout_rl.rules.rule import require

EnvFn = Callable[[], gym.Env]


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


class CurriculumVecEnv(VecEnvWrapper):  # type: ignore[misc]
    """Holds the assignments, and sends cells to environments in other processes."""

    def __init__(self, venv: VecEnv, assignments: Assignments) -> None:
        super().__init__(venv)
        self.assignments = assignments
        self.remote_cells = RemoteCells(assignments, venv.get_attr("scout_process"), self._send)

    def reset(self) -> Any:
        """Reset all; episodes under way are dropped."""
        cells = self.remote_cells
        cells.restarting(cells.envs)
        observations = self.venv.reset()
        self.reset_infos = self.venv.reset_infos
        for i in cells.envs:
            cells.started(i, self.venv.reset_infos[i][TICKET])
        cells.provide(cells.envs)  # a worker resets itself at an episode's end and needs a cell then
        return observations

    def step_wait(self) -> Any:
        """Step all, report outcomes, send new cells."""
        result = self.venv.step_wait()
        self.reset_infos = self.venv.reset_infos
        cells, dones, infos = self.remote_cells, result[2], result[3]
        if cells.envs and dones.any():
            done = [i for i in np.flatnonzero(dones).tolist() if i in cells.envs]
            for i in done:
                if SUCCESS not in infos[i]:
                    raise ended_unseen(i, "CurriculumVecEnv")
                cells.ended(i, infos[i][TICKET], infos[i][SUCCESS])
                cells.started(i, self.venv.reset_infos[i][TICKET])
            cells.provide(done)
        return result

    def close(self) -> None:
        """Close; episodes under way are dropped."""
        self.remote_cells.close()
        super().close()

    def _send(self, parcels: dict[int, list[Ticket]]) -> None:
        for i, tickets in parcels.items():
            self.venv.env_method("scout_receive", [tuple(t) for t in tickets], indices=[i])
