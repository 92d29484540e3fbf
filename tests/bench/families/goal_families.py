"""What the tests of Fetch and PointMaze share."""

import numpy as np

from scout_rl.bench.families import family
from scout_rl.bench.families.fetch import codec as fetch_codec
from scout_rl.bench.families.fetch.simulator import stock_env as fetch_env
from scout_rl.bench.families.pointmaze import codec as maze_codec
from scout_rl.bench.families.pointmaze.simulator import stock_env as maze_env
from scout_rl.bench.settings.settings import SETTINGS

FETCH = ("fetch-air", "fetch-conflict", "fetch-withingroup", "fetch-withingroup-push")
MAZES = ("pointmaze-medium", "pointmaze-large")


def flat(ladder):
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in ladder.items()}


def stock_of(key):
    """A stock environment of the setting, and its success key and restoring function."""
    setting = SETTINGS[key]
    if setting.family == "fetch":
        return fetch_env(), "is_success", fetch_codec.restore_stock
    return maze_env(setting.task), "success", maze_codec.restore_stock


def random_actions(simulator, n, seed, n_steps=None):
    """Held for some steps each, so that episodes go somewhere; some outside the bounds, float32 as a policy's."""
    generator, steps = np.random.default_rng(seed), n_steps or simulator.max_steps
    held = np.repeat(generator.uniform(-1.2, 1.2, (steps // 5 + 1, n, simulator.n_actions)), 5, axis=0)
    noise = generator.normal(0, 0.2, (steps, n, simulator.n_actions))
    return (held[:steps] + noise).astype(np.float32)


def play(simulator, starts, actions):
    """Observations [T, n, ...] of all parts side by side, rewards, successes, truncations [T, n]."""
    state = simulator.reset_to(starts)
    seen = []
    for action in actions:
        state, t = simulator.step(state, action)
        seen.append((np.concatenate(list(t.observation.values()), axis=1), t.reward, t.success, t.truncated))
    return tuple(np.stack(part) for part in zip(*seen, strict=True))


def simulator_of(key):
    return family(SETTINGS[key].family).batch_simulator(SETTINGS[key])
