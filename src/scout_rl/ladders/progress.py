"""The progress of each state of a successful trajectory: from 0 (the start) to 1 (the first success)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal
from scout_rl.ladders.trajectory import Trajectory

Progress = Callable[[Trajectory], NDArray[np.float64]]
"""One number per state (length T + 1); states after the first success are not used."""


def time_progress(trajectory: Trajectory) -> NDArray[np.float64]:
    """The share of the steps to the first success."""
    return np.arange(len(trajectory.states)) / _end(trajectory)


def path_progress(trajectory: Trajectory) -> NDArray[np.float64]:
    """The share of the achieved goal's path up to the first success."""
    achieved = _achieved(trajectory, "path")
    way = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(achieved, axis=0), axis=1))]
    total = way[_end(trajectory)]
    if total == 0:
        raise Refusal("the achieved goal never moves: use progress='time' or a function.")
    share: NDArray[np.float64] = way / total
    return share


def remaining_progress(trajectory: Trajectory) -> NDArray[np.float64]:
    """The share of the distance between achieved and desired goal that is gone; 1 at the first success."""
    achieved = _achieved(trajectory, "remaining")
    if trajectory.desired is None:
        raise Refusal("progress='remaining' needs trajectories with a desired goal.")
    distance = np.linalg.norm(achieved - trajectory.desired, axis=1)
    first, last = distance[0], distance[_end(trajectory)]
    if first == last:
        raise Refusal("the distance to the goal does not shrink: use progress='time' or a function.")
    gone: NDArray[np.float64] = (first - distance) / (first - last)
    return gone


PROGRESS: dict[str, Progress] = {
    "time": time_progress,
    "path": path_progress,
    "remaining": remaining_progress,
}


def _end(trajectory: Trajectory) -> int:
    if trajectory.first_success is None:
        raise Refusal("the trajectory never succeeds.")
    return trajectory.first_success


def _achieved(trajectory: Trajectory, progress: str) -> NDArray[np.float64]:
    if trajectory.achieved is None:
        raise Refusal(f"progress={progress!r} needs achieved goals: record with achieved=lambda observation: ...")
    return np.asarray(trajectory.achieved, dtype=np.float64)
