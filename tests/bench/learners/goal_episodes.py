"""Episodes in which every number says where it comes from."""

import numpy as np

from scout_rl.bench.learners.episodes import GoalEpisodes


def telling(first, n, horizon, n_groups=1):
    """Episode i has observation [i, t], achieves the goal [i, t], takes action [i, t] / 1e6 and wants [-1, i]."""
    number = np.arange(first, first + n, dtype=np.float32)
    time = np.arange(horizon + 1, dtype=np.float32)
    pair = np.stack(np.broadcast_arrays(number[:, None], time[None]), axis=-1)
    return GoalEpisodes(
        observation=pair,
        achieved=pair.copy(),
        action=pair[:, :-1] / 1e6,
        goal=np.stack([np.full(n, -1.0), number], axis=-1).astype(np.float32),
        radius=np.full(n, 0.5, np.float32),
        group=(np.arange(first, first + n) % n_groups).astype(np.int32),
    )


def random_episodes(seed, n=4, horizon=6, observation=5, goal=3, action=2):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return GoalEpisodes(
        observation=draw(n, horizon + 1, observation),
        achieved=draw(n, horizon + 1, goal),
        action=np.tanh(draw(n, horizon, action)),
        goal=draw(n, goal),
        radius=np.full(n, 0.8, np.float32),
        group=np.zeros(n, np.int32),
    )
