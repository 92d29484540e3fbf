"""Gradient steps per second of SAC+HER here, beside SB3's, SBX's and a plain torch loop, at equal sizes.

    make peers && .venv-peers/bin/python -m benchmarks.learners [--updates 64] [--rounds 11]

Batch 256, MLP 256x256, Fetch's shapes, HER with k=4; drawing and relabelling the minibatches is part of the time on
every side. A round is ``--updates`` gradient steps. Each candidate has a process of its own and all usable cores (torch
takes one thread where that is faster), and they are measured in turn; a ratio is the median over the rounds. Peers that
are not installed are left out. The last line is one JSON object: how many times as fast ours is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks import rounds, sac_peers
from benchmarks.sac_peers import ACTION, BATCH, GOAL, HER, HIDDEN, HORIZON, N_ENVS, OBSERVATION, RADIUS

from scout_rl.bench.hardware import n_usable_cores
from scout_rl.bench.learners.episodes import GoalEpisodes

STORED = 400
"""Episodes in every replay."""


def noise_episodes(n: int) -> GoalEpisodes:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    return GoalEpisodes(
        observation=normal(n, HORIZON + 1, OBSERVATION),
        achieved=normal(n, HORIZON + 1, GOAL),
        action=np.tanh(normal(n, HORIZON, ACTION)),
        goal=normal(n, GOAL),
        radius=np.full(n, RADIUS, np.float32),
        group=np.zeros(n, np.int32),
    )


def scout(updates: int) -> Callable[[], None]:
    """A window's update as a run calls it: 16 new episodes into the replay, then the gradient steps."""
    import jax

    from scout_rl.bench.learners import replay
    from scout_rl.bench.learners.episodes import GoalSpace
    from scout_rl.bench.learners.sac import SAC

    sac = SAC(hidden=(HIDDEN, HIDDEN), batch=BATCH, updates=updates, her=HER)
    space, key = GoalSpace(OBSERVATION, GOAL, ACTION, HORIZON), jax.random.key(0)
    state = jax.jit(lambda key: sac.init(key, space))(key)
    state = state._replace(replay=replay.add(state.replay, noise_episodes(STORED)))
    learn, new = jax.jit(sac.update, donate_argnums=0), noise_episodes(N_ENVS)

    def once() -> None:
        nonlocal state
        state = jax.block_until_ready(learn(state, new, key)).state

    return once


def peer(library: str, updates: int) -> Callable[[], None]:
    model = sac_peers.peer(library, sac_peers.Noise, subprocesses=False, updates=updates)
    model.learning_starts = STORED * HORIZON
    model.learn(STORED * HORIZON)
    if library == "sb3":
        sac_peers.choose_threads(lambda: model.train(gradient_steps=4, batch_size=BATCH))
    return lambda: model.train(gradient_steps=updates, batch_size=BATCH)


def torch_loop(updates: int) -> Callable[[], None]:
    from benchmarks.torch_sac import TorchSAC

    loop = TorchSAC(noise_episodes(STORED), HIDDEN, BATCH, HER)
    sac_peers.choose_threads(lambda: [loop.step() for _ in range(4)])
    return lambda: [loop.step() for _ in range(updates)] and None


CANDIDATES: dict[str, Callable[[int], Callable[[], None]]] = {
    "scout_rl": scout,
    "sb3": lambda updates: peer("sb3", updates),
    "sbx": lambda updates: peer("sbx", updates),
    "torch_loop": torch_loop,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=64, help="gradient steps per round")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--worker", choices=list(CANDIDATES), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        rounds.serve(lambda: CANDIDATES[args.worker](args.updates))
        return
    cores, load = n_usable_cores(), os.getloadavg()[0]
    print(f"{cores} cores, load {load:.1f}; {args.updates} gradient steps a round", flush=True)
    command = ["benchmarks.learners", "--updates", str(args.updates), "--worker"]
    seconds = rounds.measure({name: [*command, name] for name in CANDIDATES}, args.rounds)
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        print(f"{name:12}{args.updates / middle:10.0f} gradient steps/s{1e3 * middle / args.updates:9.2f} ms each")
    peers = [name for name in CANDIDATES if name != "scout_rl"]
    print(json.dumps({f"sac_vs_{name}": rounds.ratio(seconds, name, "scout_rl") for name in peers}))


if __name__ == "__main__":
    main()
