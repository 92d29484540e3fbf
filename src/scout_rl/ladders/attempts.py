"""The shortest successes of policies in anyone's environment, as trajectories for a ladder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.sources import Sources
from scout_rl.ladders.success import SuccessOf
from scout_rl.ladders.trajectory import Trajectory

Policy = Callable[[Any, np.random.Generator], Any]
"""(observation, generator) to an action; all randomness comes from the generator."""


def solve_contexts(
    env: Env,
    codec: Codec,
    policies: Sequence[Policy],
    reset_to_target: Callable[[int], Any],
    n_contexts: int,
    trajectories: Sequence[Trajectory] | None,
    success: SuccessOf,
    *,
    attempts: int,
    horizon: int,
    seed: int,
) -> tuple[list[Trajectory], Sources]:
    """A success per context: of the first policy that has one, else the context's entry in ``trajectories``."""
    if attempts < 1 or horizon < 1 or n_contexts < 1:
        raise Refusal(f"{n_contexts} contexts, {attempts} attempts and {horizon} steps: each must be at least 1.")
    if trajectories is not None and len(trajectories) != n_contexts:
        raise Refusal(f"{len(trajectories)} trajectories for {n_contexts} contexts: give one a context.")
    counts = np.zeros((len(policies), n_contexts), dtype=int)
    solutions: list[Trajectory] = []
    source_of: list[int] = []
    for x in range(n_contexts):
        reset_to_target(x)
        start = codec.get_state(env)
        for number, policy in enumerate(policies):
            actions, counts[number, x] = attempt(
                env, codec, start, policy, success, attempts=attempts, horizon=horizon, seed=(seed, number, x)
            )
            if actions is not None:
                solutions.append(play_again(env, codec, start, actions, success))
                source_of.append(number)
                break
        else:
            if trajectories is None:
                raise Refusal(
                    f"context {x}: no policy succeeds in {attempts} attempts of {horizon} steps, "
                    "and there are no trajectories to fall back on."
                )
            solutions.append(trajectories[x])
            source_of.append(len(policies))
    names = ["policy", *(f"fallback {i}" for i in range(1, len(policies)))]
    names += [] if trajectories is None else ["trajectory"]
    return solutions, Sources(
        names=tuple(names),
        assisted=tuple(i > 0 for i in range(len(names))),
        attempts=attempts,
        succeeded=tuple(map(tuple, counts.tolist())),
        source_of=tuple(source_of),
        steps=tuple(trajectory.first_success or 0 for trajectory in solutions),
    )


def attempt(
    env: Env,
    codec: Codec,
    start: State,
    policy: Policy,
    success: SuccessOf,
    *,
    attempts: int,
    horizon: int,
    seed: tuple[int, ...],
) -> tuple[list[Array] | None, int]:
    """Play the policy from ``start``; attempt k draws from ``(*seed, k)``.

    Returns the actions of the shortest success, the first of equally short ones, and the number of successes.
    """
    best: list[Array] | None = None
    succeeded = 0
    for number in range(attempts):
        generator = np.random.default_rng((*seed, number))
        observation, _ = codec.set_state(env, start)
        actions: list[Array] = []
        done = over = False
        while not (done or over) and len(actions) < horizon:
            action = policy(observation, generator)
            actions.append(np.array(action))
            observation, reward, terminated, truncated, info = env.step(action)
            done = success(observation, float(reward), terminated, truncated, info)
            over = bool(terminated or truncated)
        succeeded += done
        if done and (best is None or len(actions) < len(best)):
            best = actions
    return best, succeeded


def play_again(env: Env, codec: Codec, start: State, actions: list[Array], success: SuccessOf) -> Trajectory:
    """Play the actions again and record every state; a ``ValueError`` if success comes at another step."""
    observation, _ = codec.set_state(env, start)
    states, rewards, achieved = [start], [], [_goal(observation, "achieved_goal")]
    for t, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, info = env.step(action if action.ndim else action.item())
        states.append(codec.get_state(env))
        rewards.append(float(reward))
        achieved.append(_goal(observation, "achieved_goal"))
        done = success(observation, float(reward), terminated, truncated, info)
        if done != (t == len(actions)) or ((terminated or truncated) and t < len(actions)):
            raise Refusal(
                f"a success at step {len(actions)} was replayed from the restored start and is another episode at "
                f"step {t}: the codec does not restore all of this environment (see verify_codec)"
            )
    return Trajectory(
        states=tuple(states),
        actions=np.stack(actions),
        rewards=np.array(rewards),
        success=np.arange(1, len(actions) + 1) == len(actions),
        achieved=None if any(a is None for a in achieved) else np.stack([np.asarray(a) for a in achieved]),
        desired=_goal(observation, "desired_goal"),
    )


def _goal(observation: Any, name: str) -> Array | None:
    goal = observation.get(name) if isinstance(observation, dict) else None
    return np.array(goal) if isinstance(goal, np.ndarray) else None
