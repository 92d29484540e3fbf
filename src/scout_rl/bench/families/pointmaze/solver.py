"""The shortest way, and a controller that drives the ball along it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Solution
from scout_rl.bench.families.goal_batch import GoalObservation, solve
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze.maze import Points
from scout_rl.bench.families.pointmaze.simulator import TASKS, Simulator, simulator
from scout_rl.files.refusal import Refusal

LOOK_AHEAD = 0.25
"""The controller steers towards the point of the way this far ahead."""
TOP_SPEED = 4.0
CORNER_SPEED = 1.5
BRAKING = 10.0
"""Deceleration assumed before a corner; full force gives 24 m/s^2."""
SOON = 0.5
"""The ball may cut to a later piece that begins within this distance; one further off may be behind a wall."""
GAIN = 1.0
"""Force (1 is full) per m/s of missing velocity."""


class _Driver:
    """Drives each ball along its way, and remembers how far it has come."""

    def __init__(self, ways: list[Points]) -> None:
        n, longest = len(ways), max(map(len, ways))
        self.points = np.stack([np.concatenate([w, np.repeat(w[-1:], longest - len(w), axis=0)]) for w in ways])
        self.pieces = np.diff(self.points, axis=1)
        self.lengths = np.linalg.norm(self.pieces, axis=2)
        self.reached = np.concatenate([np.zeros((n, 1)), np.cumsum(self.lengths, axis=1)], axis=1)
        self.rows, self.piece = np.arange(n), np.zeros(n, dtype=int)

    def act(self, observation: GoalObservation) -> NDArray[np.float64]:
        """The force [n, 2]."""
        position, velocity = observation["observation"][:, :2], observation["observation"][:, 2:]
        done = self._progress(position)
        ahead = self._point_at(done + LOOK_AHEAD)
        corner = self.reached[self.rows, self.piece + 1] - done
        speed = np.minimum(TOP_SPEED, np.sqrt(CORNER_SPEED**2 + 2 * BRAKING * np.maximum(corner, 0)))
        way = ahead - position
        wanted = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-9) * speed[:, None]
        return np.asarray(np.clip(GAIN * (wanted - velocity), -1, 1))

    def _progress(self, position: Points) -> NDArray[np.float64]:
        """How far along its way each ball is: at the nearest point of its piece, or of a later piece as near."""
        share = ((position[:, None] - self.points[:, :-1]) * self.pieces).sum(axis=2)
        share = np.clip(share / np.maximum(self.lengths, 1e-9) ** 2, 0, 1)
        nearest = self.points[:, :-1] + share[..., None] * self.pieces
        off = np.linalg.norm(position[:, None] - nearest, axis=2)
        current, numbers = self.piece[:, None], np.arange(self.pieces.shape[1])
        soon = self.reached[:, :-1] <= self.reached[self.rows, self.piece + 1, None] + SOON
        nearer = (numbers > current) & soon & (off <= off[self.rows, self.piece, None])
        self.piece = np.where(nearer, numbers, current).max(axis=1)
        done = self.reached[self.rows, self.piece]
        return np.asarray(done + share[self.rows, self.piece] * self.lengths[self.rows, self.piece])

    def _point_at(self, distance: NDArray[np.float64]) -> Points:
        piece = np.minimum((self.reached[:, 1:] <= distance[:, None]).sum(axis=1), self.pieces.shape[1] - 1)
        rest = distance - self.reached[self.rows, piece]
        share = np.clip(rest / np.maximum(self.lengths[self.rows, piece], 1e-9), 0, 1)
        return np.asarray(self.points[self.rows, piece] + share[:, None] * self.pieces[self.rows, piece])


def simulator_of_states(states: Mapping[str, Array]) -> Simulator:
    """The simulator of these states, by the model's fingerprint."""
    for task in TASKS:
        if (np.asarray(states["model_fingerprint"]) == simulator(task).pool.layout.fingerprint).all():
            return simulator(task)
    raise Refusal("this state belongs to another MuJoCo model than that of any maze.")


def solutions(states: Mapping[str, Array]) -> list[Solution]:
    """The ball driven along the shortest ways from n states."""
    simulated = simulator_of_states(states)
    ways = [simulated.maze.way(p, g) for p, g in zip(states["qpos"], states["goal"], strict=True)]
    return solve(simulated, states, _Driver(ways).act)
