"""The Recorder: a Gymnasium wrapper that keeps episodes as trajectories. Needs the ``gymnasium`` extra.

It records restored episodes too: ``codec.set_state(recorder, state)`` begins a new trajectory there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, State, goal_of
from scout_rl.codecs.compare import flatten
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.success import Success, success_reader
from scout_rl.ladders.trajectory import Trajectory

__all__ = ["Recorder", "Trajectory"]


class Recorder(gymnasium.Wrapper):  # type: ignore[misc]
    """Records states (through the codec), actions, rewards, success and achieved goals.

    ``success`` is a key of info or a function of (observation, reward, terminated, truncated, info). By default
    it is one of the usual keys; an info without them is an error. ``achieved(observation)`` returns the achieved
    goal if observations have no ``achieved_goal``. Finished episodes are in ``trajectories``.
    """

    def __init__(
        self,
        env: Env,
        codec: Codec | None = None,
        *,
        success: Success | None = None,
        achieved: Callable[[Any], Any] | None = None,
        observations: bool = False,
        only_successes: bool = False,
    ) -> None:
        super().__init__(env)
        self.trajectories: list[Trajectory] = []
        self._codec = codec
        self._success = success_reader(success, env)
        self._achieved = achieved
        self._keeps_observations = observations
        self._only_successes = only_successes
        self._episode: _Episode | None = None

    @property
    def codec(self) -> Codec:
        """The codec that reads states; by default the one that fits the environment."""
        if self._codec is None:
            self._codec = codec_for(self.env)
        return self._codec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset and begin a trajectory; an unfinished one is dropped."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode = _Episode(seed)
        self._see(observation)
        return observation, info

    def step(self, action: Any) -> Any:
        """Step and record; the end of the episode finishes the trajectory."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._episode is None:
            raise Refusal("reset the Recorder before stepping it.")
        self._episode.actions.append(np.array(action))
        self._episode.rewards.append(float(reward))
        self._episode.success.append(self._success(observation, float(reward), terminated, truncated, info))
        self._see(observation)
        if terminated or truncated:
            self.finish(terminated=bool(terminated), truncated=bool(truncated))
        return observation, reward, terminated, truncated, info

    def finish(self, *, terminated: bool = False, truncated: bool = True) -> Trajectory:
        """Finish and keep the current trajectory, also before the episode's end."""
        if self._episode is None or not self._episode.actions:
            raise Refusal("there is no step to keep: reset the Recorder and step it first.")
        trajectory = self._episode.trajectory(self.codec, terminated, truncated)
        if not self._only_successes or trajectory.first_success is not None:
            self.trajectories.append(trajectory)
        self._episode = None
        return trajectory

    def _see(self, observation: Any) -> None:
        episode = self._episode
        assert episode is not None
        episode.states.append(self.codec.get_state(self.env))
        if self._achieved is not None:
            episode.achieved.append(np.array(self._achieved(observation), dtype=np.float64))
        elif isinstance(observation, dict) and isinstance(observation.get("achieved_goal"), np.ndarray):
            episode.achieved.append(observation["achieved_goal"].copy())
            episode.desired = np.array(observation["desired_goal"])
        if self._keeps_observations:
            episode.observations.append({n: a.copy() for n, a in flatten(observation).items()})


class _Episode:
    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.states: list[State] = []
        self.actions: list[Array] = []
        self.rewards: list[float] = []
        self.success: list[bool] = []
        self.achieved: list[Array] = []
        self.desired: Array | None = None
        self.observations: list[dict[str, Array]] = []

    def trajectory(self, codec: Codec, terminated: bool, truncated: bool) -> Trajectory:
        desired = self.desired
        if desired is None and self.achieved:
            goal = goal_of(codec, self.states[0])
            desired = goal if goal is not None and goal.shape == self.achieved[0].shape else None
        names = self.observations[0] if self.observations else {}
        return Trajectory(
            states=tuple(self.states),
            actions=np.stack(self.actions),
            rewards=np.array(self.rewards),
            success=np.array(self.success, dtype=bool),
            achieved=np.stack(self.achieved) if self.achieved else None,
            desired=desired,
            observations={name: np.stack([o[name] for o in self.observations]) for name in names},
            terminated=terminated,
            truncated=truncated,
            seed=self.seed,
        )
