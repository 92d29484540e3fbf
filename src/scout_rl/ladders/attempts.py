"""Policies' own shortest successes in anyone's environment, as trajectories that a ladder can be made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State
from scout_rl.files.archive import Array
from scout_rl.ladders.sources import Sources
from scout_rl.ladders.success import SuccessOf
from scout_rl.ladders.trajectory import Trajectory

Policy = Callable[[Any, np.random.Generator], Any]
"""(observation, generator) to an action; all of the policy's chance comes from the generator."""


class Found(NamedTuple):
    """What the attempts of one policy from one start came to."""

    actions: list[Array] | None
    """Of the shortest success, the first of those that are equally short; None where no attempt succeeded."""
    succeeded: int


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
    """A successful trajectory of each context: that of the first policy that has one, else the one that was given."""
    if attempts < 1 or horizon < 1 or n_contexts < 1:
        raise ValueError(f"{n_contexts} contexts, {attempts} attempts and {horizon} steps: each must be at least 1.")
    if trajectories is not None and len(trajectories) != n_contexts:
        raise ValueError(f"{len(trajectories)} trajectories for {n_contexts} contexts: give one a context.")
    counts = np.zeros((len(policies), n_contexts), dtype=int)
    kept: list[Trajectory] = []
    chosen: list[int] = []
    for x in range(n_contexts):
        reset_to_target(x)
        start = codec.get_state(env)
        for number, policy in enumerate(policies):
            found = attempt(
                env, codec, start, policy, success, attempts=attempts, horizon=horizon, seed=(seed, number, x)
            )
            counts[number, x] = found.succeeded
            if found.actions is not None:
                kept.append(replay(env, codec, start, found.actions, success))
                chosen.append(number)
                break
        else:
            if trajectories is None:
                raise ValueError(
                    f"context {x}: no policy succeeds in {attempts} attempts of {horizon} steps, "
                    "and there are no trajectories to fall back on."
                )
            kept.append(trajectories[x])
            chosen.append(len(policies))
    names = ["policy", *(f"fallback {i}" for i in range(1, len(policies)))]
    names += [] if trajectories is None else ["trajectory"]
    return kept, Sources(
        names=tuple(names),
        assisted=tuple(i > 0 for i in range(len(names))),
        attempts=attempts,
        succeeded=tuple(map(tuple, counts.tolist())),
        chosen=tuple(chosen),
        steps=tuple(trajectory.first_success or 0 for trajectory in kept),
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
) -> Found:
    """Play the policy from ``start``; attempt k draws from ``(*seed, k)``. Actions are kept, states are not."""
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
    return Found(best, succeeded)


def replay(env: Env, codec: Codec, start: State, actions: list[Array], success: SuccessOf) -> Trajectory:
    """The same actions once more, with every state; a ``ValueError`` where success does not come at the same step."""
    observation, _ = codec.set_state(env, start)
    states, rewards, achieved = [start], [], [_goal(observation, "achieved_goal")]
    for t, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, info = env.step(action if action.ndim else action.item())
        states.append(codec.get_state(env))
        rewards.append(float(reward))
        achieved.append(_goal(observation, "achieved_goal"))
        done = success(observation, float(reward), terminated, truncated, info)
        if done != (t == len(actions)) or ((terminated or truncated) and t < len(actions)):
            raise ValueError(
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
    found = observation.get(name) if isinstance(observation, dict) else None
    return np.array(found) if isinstance(found, np.ndarray) else None
