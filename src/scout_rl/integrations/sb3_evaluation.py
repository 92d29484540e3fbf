"""SB3 policies played from the target start, with the observation normalisation of training."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from scout_rl.codecs.codec import Codec
from scout_rl.integrations.assignments import LIKELY_CAUSE
from scout_rl.integrations.gymnasium import CONTEXT, SUCCESS, TargetEnv
from scout_rl.integrations.sb3_vec_env import EnvFn
from scout_rl.integrations.success import Success
from scout_rl.rules.rule import require


class TargetVecEnv(VecEnvWrapper):  # type: ignore[misc]
    """Does nothing: SB3 wants as many wrappers around evaluation environments as around training ones."""

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


def target_env(
    env_fn: EnvFn, reset_to: Any, contexts: ArrayLike, success: Success, *, codec: Codec | None = None
) -> TargetVecEnv:
    """Return an evaluation environment: these contexts in turn, always at level 0. SB3's EvalCallback accepts it."""
    return TargetVecEnv(DummyVecEnv([lambda: Monitor(TargetEnv(env_fn(), reset_to, contexts, success, codec=codec))]))


def evaluate(model: Any, env: VecEnv, *, deterministic: bool = True) -> dict[int, float]:
    """Play every context of a `target_env`; return the success of each context.

    That is True or False, or the share of successes if the environment lists a context several times. An ``env`` in a
    VecNormalize needs the statistics of training; `CurriculumCallback` copies them.
    """
    trained_in = model.get_env() if hasattr(model, "get_env") else None
    require(
        trained_in is None or normaliser(trained_in) is None or normaliser(env) is not None,
        "the model was trained on normalised observations, but the evaluation environment is in no VecNormalize",
    )
    return by_context(play(model, env, deterministic=deterministic))


def play(model: Any, env: VecEnv, *, deterministic: bool) -> list[tuple[int, bool]]:
    """Play one episode per entry of the environment's contexts; return (context, success) of each."""
    contexts = contexts_of(env)
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


def by_context(played: list[tuple[int, bool]]) -> dict[int, float]:
    """Return the success of each context: True or False, or the share if it was played several times."""
    outcomes: dict[int, list[bool]] = {}
    for context, success in played:
        outcomes.setdefault(context, []).append(success)
    return {context: rows[0] if len(rows) == 1 else float(np.mean(rows)) for context, rows in outcomes.items()}


def contexts_of(env: VecEnv) -> list[int]:
    """Return the contexts that a `target_env` plays; refuse any other environment."""
    try:
        contexts = env.get_attr("scout_contexts")
    except AttributeError:
        contexts = []
    require(len(contexts) == 1, "the evaluation environment must come from target_env")
    return list(contexts[0])


def normaliser(env: VecEnv) -> VecNormalize | None:
    """Return the wrapper that normalises observations, if any."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecNormalize) and env.norm_obs:
            return env
        env = env.venv
    return None


def check_normalised_alike(training: VecEnv, evaluation: VecEnv) -> None:
    """Refuse environments of which only one normalises observations."""
    verb = {True: "normalises observations", False: "does not"}
    in_training, in_evaluation = (normaliser(env) is not None for env in (training, evaluation))
    require(
        in_training == in_evaluation,
        f"the training environment {verb[in_training]} and the evaluation environment {verb[in_evaluation]}: put both "
        f"into a VecNormalize, or neither",
    )


def copy_statistics(training: VecEnv, evaluation: VecEnv) -> None:
    """Copy the normalisation of training to the evaluation environment, and freeze it there."""
    source, target = normaliser(training), normaliser(evaluation)
    if source is not None and target is not None:
        target.obs_rms, target.ret_rms = deepcopy(source.obs_rms), deepcopy(source.ret_rms)
        target.training = False
