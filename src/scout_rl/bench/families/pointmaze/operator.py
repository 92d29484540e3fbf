"""The hand-built reset operator: the ball at rest at a fraction of the shortest way from start to goal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.families.mujoco_batch import Array
from scout_rl.bench.families.pointmaze import contexts as maze_contexts
from scout_rl.bench.families.pointmaze.maze import along, way_length
from scout_rl.ladders.ladder import level_fractions


def starts(contexts: Mapping[str, Array], n_levels: int) -> States:
    """The ladder [contexts, levels, ...]."""
    simulated = maze_contexts.simulator_of(contexts)
    maze_contexts.check(simulated.maze, contexts)
    ways = [simulated.maze.way(s, g) for s, g in zip(contexts["start"], contexts["goal"], strict=True)]
    levels = []
    for fraction in level_fractions(n_levels):
        places = np.stack([along(way, fraction * way_length(way)) if fraction else way[0] for way in ways])
        levels.append(maze_contexts.starts_at(simulated, places, contexts["goal"]))
    return {name: np.stack([level[name] for level in levels], axis=1) for name in levels[0]}
