"""The Recorder: a Gymnasium wrapper that keeps episodes as trajectories. Needs the ``gymnasium`` extra.

It records restored episodes too: ``codec.set_state(recorder, state)`` begins a new trajectory there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scout_rl.codecs import codec_for
from scout_rl.codecs.codec import Codec, Env, State, goal_of
from scout_rl.codecs.compare import flatten
from scout_rl.files.archive import Array
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.success import Success, success_reader
from scout_rl.ladders.trajectory import Trajectory

with naming_extras("scout_rl.ladders.recorder"):
    import gymnasium

__all__ = ["Recorder", "Trajectory"]


class Recorder(gymnasium.Wrapper):  # type: ignore[misc]
    """Records states (through the codec), actions, rewards, success and achieved goals.

    ``success`` is a key of info or a function of (observation, reward, terminated, truncated, info). By default
    it is one of the usual keys; an info without them is an error. ``achieved(observation)`` returns the achieved
    goal if observations have no ``achieved_goal``. The end of an episode finishes its trajectory; `finish` does so
    before. Finished trajectories are in ``trajectories``, or those alone that succeeded, with ``only_successes``.
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
        self._seed: int | None = None
        self._seen: list[tuple[State, Array | None, Array | None, dict[str, Array]]] = []
        """Of every state of the episode: state, achieved goal, desired goal, observations."""
        self._steps: list[tuple[Array, float, bool]] = []
        """Of every step: action, reward, success."""
        self._finished: Trajectory | None = None
        """The trajectory that was finished since the last reset."""

    @property
    def codec(self) -> Codec:
        """The codec that reads states; by default the one that fits the environment."""
        if self._codec is None:
            self._codec = codec_for(self.env)
        return self._codec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset and begin a trajectory; an unfinished one is dropped."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed, self._seen, self._steps, self._finished = seed, [], [], None
        self._see(observation)
        return observation, info

    def step(self, action: Any) -> Any:
        """Step and record; the end of the episode finishes the trajectory."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not self._seen:
            raise Refusal("the Recorder's episode has not begun, or is finished: reset it before the next step.")
        succeeded = self._success(observation, float(reward), terminated, truncated, info)
        self._steps.append((np.array(action), float(reward), succeeded))
        self._see(observation)
        if terminated or truncated:
            self.finish(terminated=bool(terminated), truncated=bool(truncated))
        return observation, reward, terminated, truncated, info

    def finish(self, *, terminated: bool = False, truncated: bool = True) -> Trajectory:
        """Finish and keep the current trajectory before the episode's end.

        If the episode has ended, its trajectory is finished already: nothing changes, and that one is returned.
        """
        if self._finished is not None:
            return self._finished
        if not self._steps:
            raise Refusal("there is no step to keep: reset the Recorder and step it first.")
        states, achieved, desired, observed = zip(*self._seen, strict=True)
        actions, rewards, success = zip(*self._steps, strict=True)
        goal = desired[-1]
        if goal is None and achieved[0] is not None:
            goal = goal_of(self.codec, states[0])
            goal = goal if goal is not None and goal.shape == achieved[0].shape else None
        trajectory = Trajectory(
            states=states,
            actions=np.stack(actions),
            rewards=np.array(rewards),
            success=np.array(success, dtype=bool),
            achieved=None if achieved[0] is None else np.stack(achieved),
            desired=goal,
            observations={name: np.stack([named[name] for named in observed]) for name in observed[0]},
            terminated=terminated,
            truncated=truncated,
            seed=self._seed,
        )
        if not self._only_successes or trajectory.first_success is not None:
            self.trajectories.append(trajectory)
        self._seen, self._steps, self._finished = [], [], trajectory
        return trajectory

    def _see(self, observation: Any) -> None:
        achieved = desired = None
        if self._achieved is not None:
            achieved = np.array(self._achieved(observation), dtype=np.float64)
        elif isinstance(observation, dict) and isinstance(observation.get("achieved_goal"), np.ndarray):
            achieved, desired = observation["achieved_goal"].copy(), np.array(observation["desired_goal"])
        named = flatten(observation) if self._keeps_observations else {}
        self._seen.append((self.codec.get_state(self.env), achieved, desired, named))
