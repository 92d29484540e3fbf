"""How fast MiniGrid steps and learns here, beside the stock package, EnvPool, NAVIX and a torch PPO.

    make peers && .venv-peers/bin/python -m benchmarks.minigrid_speed [--rounds 3]

The best of the rounds counts. The last line printed is one JSON object.

DoorKey 8x8 with the 7x7x3 partial view, random actions drawn before the clock starts; finished episodes start again.
Peers that are not installed in this interpreter are skipped with a printed reason.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.minigrid_torch_ppo import TorchWindow

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.minigrid import codec
from scout_rl.bench.learners.ppo import PPO
from scout_rl.bench.rollouts.device import rollout
from scout_rl.bench.settings.settings import SETTINGS

SETTING = SETTINGS["doorkey"]
EPISODES = 16


def best_rate(steps: int, run: Callable[[], Any], repeats: int) -> float:
    """Steps per second of the fastest of several repeats, after one to compile and warm up."""
    run()
    return steps / min(_seconds(run) for _ in range(repeats))


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def packed_starts(n: int) -> Any:
    """Level-0 starts of n contexts in the simulator's form, the bank repeated as often as needed."""
    minigrid = family(SETTING.family)
    target = minigrid.target_starts(load_bank(SETTING).train.contexts)
    rows = np.arange(n) % SETTING.n_train
    simulator = minigrid.simulator(SETTING)
    starts = codec.to_simulator(simulator, {name: a[rows] for name, a in target.items()})
    return simulator, jax.tree.map(jnp.asarray, starts)


def scout_rate(n_envs: int, n_steps: int, repeats: int) -> float:
    simulator, starts = packed_starts(n_envs)
    actions = jax.random.randint(jax.random.key(0), (n_steps, n_envs), 0, 7)

    def step(state: Any, action: Any) -> Any:
        state, transition = jax.vmap(simulator.step)(state, action)
        over = transition.terminated | transition.truncated
        again = jax.tree.map(lambda s, n: jnp.where(over.reshape(-1, *[1] * (n.ndim - 1)), s, n), starts, state)
        return again, (transition.observation, transition.reward)

    scan = jax.jit(lambda state, actions: jax.lax.scan(step, state, actions))
    return best_rate(n_envs * n_steps, lambda: jax.block_until_ready(scan(starts, actions)), repeats)


def stock_rate(n_envs: int, n_steps: int, repeats: int) -> float:
    import gymnasium
    import minigrid  # noqa: F401  (registers the environments)

    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(SETTING.task)] * n_envs)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 7, (n_steps, n_envs))
    return best_rate(n_envs * n_steps, lambda: [envs.step(a) for a in actions], repeats)


def envpool_rate(n_envs: int, n_steps: int, repeats: int) -> float:
    import envpool

    envs = envpool.make_gymnasium(SETTING.task, num_envs=n_envs, num_threads=2)
    envs.reset()
    actions = np.random.default_rng(0).integers(0, 7, (n_steps, n_envs)).astype(np.int32)
    return best_rate(n_envs * n_steps, lambda: [envs.step(a) for a in actions], repeats)


def navix_rate(n_envs: int, n_steps: int, repeats: int) -> float:
    import navix

    view = navix.observations.symbolic_first_person
    env = navix.make("Navix-DoorKey-Random-8x8-v0", max_steps=640, observation_fn=view)
    actions = jax.random.randint(jax.random.key(0), (n_steps, n_envs), 0, 7)

    def step(timestep: Any, action: Any) -> Any:
        timestep = jax.vmap(env.step)(timestep, action)
        return timestep, (timestep.observation, timestep.reward)

    timestep = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), n_envs))
    scan = jax.jit(lambda timestep, actions: jax.lax.scan(step, timestep, actions))
    return best_rate(n_envs * n_steps, lambda: jax.block_until_ready(scan(timestep, actions)), repeats)


def scout_window_seconds(repeats: int) -> tuple[float, int]:
    """Seconds and steps of a whole window of a fresh policy from target starts, the longest kind."""
    simulator, starts = packed_starts(EPISODES)
    ppo = PPO()
    state = ppo.init(jax.random.key(0))

    @jax.jit
    def window(state: Any, key: Any) -> Any:
        act_key, update_key = jax.random.split(key)
        episodes = rollout(simulator, partial(ppo.act, ppo.policy(state)), starts, act_key)
        return ppo.update(state, episodes, update_key), episodes.valid.sum()

    _, steps = jax.block_until_ready(window(state, jax.random.key(0)))
    seconds = min(_seconds(lambda: jax.block_until_ready(window(state, jax.random.key(0)))) for _ in range(repeats))
    return seconds, int(steps)


def torch_window_seconds(repeats: int) -> tuple[float, int]:
    """The same window with torch on the stock vector environments, at the better thread count."""
    window = TorchWindow(SETTING.task, EPISODES, seed=0)
    timed = []
    for n_threads in (1, 2):
        window.torch.set_num_threads(n_threads)
        timed += [(_seconds(window.run), window.steps) for _ in range(repeats)]
    return min(timed)


def measured(name: str, n_envs: int, rate: Callable[..., float], n_steps: int, repeats: int) -> float | None:
    """One line of the table; None where the peer is missing."""
    try:
        value = rate(n_envs, n_steps, repeats)
    except ModuleNotFoundError as error:
        print(f"{name:<24}{n_envs:>6}  skipped: {error.name} is not installed")
        return None
    print(f"{name:<24}{n_envs:>6}{value:>14,.0f}", flush=True)
    return value


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else round(ours / theirs, 1)


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=0, help="repeats of every measurement, the best counts; 0: 2 to 5"
    )
    rounds = parser.parse_args().rounds
    load_before = round(os.getloadavg()[0], 1)
    print(f"{SETTING.task} on {jax.devices()[0].platform}\n{'':<24}{'envs':>6}{'steps/s':>14}")
    ours_16 = measured("scout_rl", 16, scout_rate, 8000, rounds or 3)
    ours_1024 = measured("scout_rl", 1024, scout_rate, 400, rounds or 3)
    stock = measured("stock SyncVectorEnv", 16, stock_rate, 400, rounds or 2)
    pool = measured("EnvPool, 2 threads", 16, envpool_rate, 4000, rounds or 3)
    pool_1024 = measured("EnvPool, 2 threads", 1024, envpool_rate, 100, rounds or 3)
    navix_16 = measured("NAVIX", 16, navix_rate, 500, rounds or 3)
    navix_1024 = measured("NAVIX", 1024, navix_rate, 50, rounds or 3)
    window, steps = scout_window_seconds(rounds or 5)
    print(f"\n{'':<24}{'steps':>6}{'s/window':>14}\n{'scout_rl':<24}{steps:>6}{window:>14.3f}", flush=True)
    try:
        torch_window, torch_steps = torch_window_seconds(rounds or 2)
        print(f"{'torch PPO, stock envs':<24}{torch_steps:>6}{torch_window:>14.3f}")
        window_ratio = ratio(torch_window / torch_steps, window / steps)
    except ModuleNotFoundError as error:
        print(f"{'torch PPO, stock envs':<24}  skipped: {error.name} is not installed")
        window_ratio = None
    print(
        json.dumps(
            {
                "vs_stock": ratio(ours_16, stock),
                "vs_envpool": ratio(ours_16, pool),
                "vs_envpool_1024": ratio(ours_1024, pool_1024),
                "vs_navix": ratio(ours_16, navix_16),
                "vs_navix_1024": ratio(ours_1024, navix_1024),
                "steps_per_s_16": round(ours_16 or 0),
                "steps_per_s_1024": round(ours_1024 or 0),
                "window_s": round(window, 4),
                "window_vs_torch": window_ratio,
                "load_before": load_before,
                "versions": {name: version(name) for name in ("jax", "minigrid", "envpool", "navix", "torch")},
            }
        )
    )


if __name__ == "__main__":
    main()
