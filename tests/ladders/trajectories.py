"""Demonstrations that the tests of the recorder and of the ladder share."""

from __future__ import annotations

from typing import Any

import numpy as np

from scout_rl.codecs.codec import State
from scout_rl.ladders.recorder import Recorder
from scout_rl.ladders.trajectory import Trajectory


def drawn(values: Any, success_at: int, desired: Any = None) -> Trajectory:
    """A trajectory along a line whose state t is just the number t."""
    achieved = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    steps = len(values) - 1
    success = np.zeros(steps, dtype=bool)
    success[success_at - 1 :] = True
    states = tuple(State({"qpos": np.array([float(t)])}, "mujoco", {}) for t in range(len(values)))
    return Trajectory(states, np.zeros((steps, 1)), np.zeros(steps), success, achieved, desired)


def open_drawer(env: Any, seed: int) -> Trajectory:
    """Meta-World's scripted policy on drawer-open, until the first success."""
    from metaworld.policies import ENV_POLICY_MAP

    recorder = Recorder(env, achieved=lambda observation: observation[4:7])
    env.unwrapped.seed(seed)
    policy = ENV_POLICY_MAP["drawer-open-v3"]()
    observation, _ = recorder.reset()
    for _ in range(200):
        action = np.clip(policy.get_action(observation), -1, 1).astype(np.float32)
        observation, _, _, _, info = recorder.step(action)
        if info["success"]:
            break
    return recorder.finish()


def pick_up(env: Any, seed: int) -> Trajectory:
    """A scripted grasp on FetchPickAndPlace, carried to the goal in the air with the gripper closed."""
    recorder = Recorder(env)
    observation, _ = recorder.reset(seed=seed)
    env.unwrapped.goal = np.array([1.3, 0.75, 0.6])
    observation["desired_goal"] = env.unwrapped.goal.copy()
    state = recorder.codec.get_state(env)
    observation, _ = recorder.codec.set_state(recorder, state)

    def move(target: np.ndarray, gripper: float) -> np.ndarray:
        delta = np.clip(8 * (target - observation["observation"][:3]), -1, 1)
        return np.array([*delta, gripper], dtype=np.float32)

    def phase(steps: int, gripper: float, target: Any) -> bool:
        nonlocal observation
        for _ in range(steps):
            observation, _, terminated, truncated, info = recorder.step(move(target(), gripper))
            if terminated or truncated or (gripper < 0 and info["is_success"]):
                return True
        return False

    def held() -> np.ndarray:
        return observation["observation"][3:6]

    phase(10, 1.0, lambda: held() + np.array([0, 0, 0.08]))
    phase(8, 1.0, held)
    phase(6, -1.0, held)
    phase(25, -1.0, lambda: observation["desired_goal"])
    return recorder.trajectories[-1] if recorder.trajectories else recorder.finish()
