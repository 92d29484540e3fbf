"""Trajectories from a Minari dataset, and to one. Needs the ``minari`` extra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scout_rl.codecs.codec import Codec, Env, State
from scout_rl.codecs.compare import flatten
from scout_rl.files.archive import Array, archive_bytes, parse_archive
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.success import Success, binary
from scout_rl.ladders.trajectory import Trajectory

STATE_KEY, LENGTH_KEY = "scout_state", "scout_state_bytes"
"""The keys of our states in a dataset's infos: one padded row of bytes per state, and its length."""


def to_minari(trajectories: Sequence[Trajectory], dataset_id: str, env: Env, **metadata: Any) -> Any:
    """Write trajectories with their states as a new local Minari dataset; returns it.

    ``metadata`` goes to Minari (author, description, ...). The observations must have been recorded.
    """
    with naming_extras("scout_rl.ladders.minari"):
        import minari
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    space = env.observation_space
    nested = isinstance(space, spaces.Dict)
    buffers = []
    for number, trajectory in enumerate(trajectories):
        if not trajectory.observations:
            raise Refusal(f"trajectory {number} has no observations: record it with observations=True.")
        names = list(space.spaces) if nested else ["observation"]
        if set(names) != set(trajectory.observations):
            raise Refusal(f"trajectory {number} observes {list(trajectory.observations)}, not {names}.")
        observations = {name: trajectory.observations[name] for name in names}
        ends = np.zeros(len(trajectory), dtype=bool)
        ends[-1] = True
        buffers.append(
            EpisodeBuffer(
                id=number,
                seed=trajectory.seed,
                observations=observations if nested else observations["observation"],
                actions=trajectory.actions,
                rewards=list(trajectory.rewards),
                terminations=list(ends & trajectory.terminated),
                truncations=list(ends & (not trajectory.terminated)),
                infos={"success": np.r_[False, trajectory.success], **_state_rows(trajectory.states)},
            )
        )
    return minari.create_dataset_from_buffers(dataset_id, buffers, env=env, jpeg_encoding=False, **metadata)


def from_minari(
    dataset: Any,
    env: Env | None = None,
    codec: Codec | None = None,
    *,
    success: Success | None = None,
    episodes: Iterable[int] | None = None,
    tolerance: float = 1e-6,
) -> list[Trajectory]:
    """The episodes of a Minari dataset (or its id) as trajectories.

    States come from the infos if `to_minari` wrote them. Otherwise each episode is played again in ``env``
    (by default the one that the dataset recovers) from its seeded reset. It must show the recorded observations
    within ``tolerance`` and succeed; a ``ValueError`` names an episode that does not.
    """
    with naming_extras("scout_rl.ladders.minari"):
        import minari

    loaded = minari.load_dataset(dataset) if isinstance(dataset, str) else dataset
    wanted_ids = None if episodes is None else set(episodes)
    trajectories = []
    for episode in loaded.iterate_episodes():
        if wanted_ids is not None and episode.id not in wanted_ids:
            continue
        metadata = next(iter(loaded.storage.get_episode_metadata([episode.id])))
        if STATE_KEY in episode.infos:
            trajectories.append(_stored(episode, metadata))
        else:
            env = loaded.recover_environment() if env is None else env
            trajectories.append(_played_again(episode, metadata, env, codec, success, tolerance))
    return trajectories


def _state_rows(states: Sequence[State]) -> dict[str, Array]:
    contents = [archive_bytes(*state.content())[0] for state in states]
    rows = np.zeros((len(contents), max(map(len, contents))), dtype=np.uint8)
    for row, content in zip(rows, contents, strict=True):
        row[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    return {STATE_KEY: rows, LENGTH_KEY: np.array([len(c) for c in contents])}


def _stored(episode: Any, metadata: dict[str, Any]) -> Trajectory:
    states = []
    for number, (row, length) in enumerate(zip(episode.infos[STATE_KEY], episode.infos[LENGTH_KEY], strict=True)):
        name = f"state {number} of episode {episode.id}"
        arrays, meta, _ = parse_archive(np.asarray(row)[: int(length)].tobytes(), name)
        states.append(State(arrays, meta["codec"], meta["library"]))
    observations = flatten(episode.observations)
    return Trajectory(
        states=tuple(states),
        actions=np.asarray(episode.actions),
        rewards=np.asarray(episode.rewards),
        success=np.array([binary(value, "info['success'] is") for value in episode.infos["success"][1:]], dtype=bool),
        achieved=observations.get("achieved_goal"),
        desired=observations["desired_goal"][0] if "desired_goal" in observations else None,
        observations=observations,
        terminated=bool(episode.terminations[-1]),
        truncated=bool(episode.truncations[-1]),
        seed=metadata.get("seed"),
    )


def _played_again(
    episode: Any,
    metadata: dict[str, Any],
    env: Env,
    codec: Codec | None,
    success: Success | None,
    tolerance: float,
) -> Trajectory:
    from scout_rl.ladders.recorder import Recorder

    if metadata.get("seed") is None:
        raise Refusal(f"episode {episode.id} has neither states nor the seed of its reset: no replay.")
    recorder = Recorder(env, codec, success=success, observations=True)
    recorder.reset(seed=int(metadata["seed"]), options=metadata.get("options"))
    for action in episode.actions:
        _, _, terminated, truncated, _ = recorder.step(action)
        if terminated or truncated:
            break
    trajectory = recorder.trajectories[0] if recorder.trajectories else recorder.finish()
    for name, recorded in flatten(episode.observations).items():
        played = trajectory.observations.get(name)
        steps = 0 if played is None else min(len(played), len(recorded))
        if played is None or not np.allclose(played[:steps], recorded[:steps], atol=tolerance, rtol=0):
            raise Refusal(f"episode {episode.id}: the replay shows another {name} than was recorded.")
    if trajectory.first_success is None:
        raise Refusal(f"episode {episode.id}: the replay of its {len(trajectory)} actions does not succeed.")
    return trajectory
