"""A point that is pushed about a plane: the smallest goal-conditioned simulator that a host window can drive."""

from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    observation: dict
    reward: np.ndarray
    success: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class Handle:
    def __init__(self, place, goal):
        self.place, self.goal = place.copy(), goal.copy()


class Reach:
    """Offset by 3 in both coordinates, so that inputs as they are would be hard to tell apart."""

    max_steps = 12
    n_actions = 2
    radius = 0.15

    def reset_to(self, states):
        return Handle(states["place"], states["goal"])

    def observe(self, handle):
        return {
            "observation": handle.place + 3.0,
            "achieved_goal": handle.place + 3.0,
            "desired_goal": handle.goal + 3.0,
        }

    def step(self, handle, action):
        assert action.shape == handle.place.shape
        assert (np.abs(action) <= 1).all()
        handle.place = np.clip(handle.place + 0.2 * action, -1, 1)
        apart = np.linalg.norm(handle.place - handle.goal, axis=1)
        success, no = apart <= self.radius, np.zeros(len(apart), bool)
        return handle, Step(self.observe(handle), success - 1.0, success, no, no)

    def rest(self, handle, resting):
        """Steps go on: what a resting environment does counts no more."""

    def goal_radius(self, handle):
        return np.full(len(handle.goal), self.radius)


def starts(n, seed):
    rng = np.random.default_rng(seed)
    return {"place": rng.uniform(-1, 1, (n, 2)), "goal": rng.uniform(-1, 1, (n, 2))}
