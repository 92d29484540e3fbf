"""What a device curriculum adds to a step of our JAX MiniGrid: the same compiled loop with and without it, in turn.

    python -m benchmarks.device_overhead [--environments 4096 --contexts 1000]

Random actions on DoorKey 8x8 with 100 steps; environments are out of step with each other. Three loops are measured in
turn, round after round, and the best round of each counts: a step without a curriculum (a finished environment starts
again from its own cell); a step with it (the environment gets its next cell, and windows close); and the curriculum
alone on the ends and outcomes of the first loop. On a busy machine the difference of the first two is smaller than
their noise: then the third is the figure. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from scout_rl import rules
from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.minigrid import codec
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.integrations.device import JaxCurriculum

SETTING, LEVELS = SETTINGS["doorkey-limited"], 5


def starts_of(n_contexts: int):
    """The simulator, and a start per cell, ``[contexts * levels, ...]``: target starts of the bank, repeated."""
    minigrid = family(SETTING.family)
    target = minigrid.target_starts(load_bank(SETTING).train.contexts)
    rows = np.repeat(np.arange(n_contexts) % SETTING.n_train, LEVELS)
    simulator = minigrid.simulator(SETTING)
    return simulator, jax.tree.map(
        jnp.asarray, codec.to_simulator(simulator, {name: a[rows] for name, a in target.items()})
    )


def loops(rule, n_contexts: int, n: int, window: int, calls: int):
    """Three functions without arguments: ``calls`` steps without, with, and of the curriculum alone."""
    simulator, starts = starts_of(n_contexts)
    curriculum = JaxCurriculum(rule, n_contexts, LEVELS, environments=n, longest=simulator.max_steps, window=window)
    paced = curriculum.init(jax.random.key(0))
    own = paced.context * LEVELS + paced.level
    first = jax.tree.map(lambda a: a[own], starts)
    first = first._replace(step_count=jax.random.randint(jax.random.key(1), (n,), 0, simulator.max_steps))
    keys = jax.random.split(jax.random.key(2), calls)

    def step(carry, key):
        state, paced = carry
        state, result = jax.vmap(simulator.step)(state, jax.random.randint(key, (n,), 0, 7))
        done, cell = result.terminated | result.truncated, own
        if paced is not None:
            paced = curriculum.step(paced, done, result.success)
            cell = paced.context * LEVELS + paced.level
        again = jax.tree.map(lambda a: a[cell], starts)
        state = jax.tree.map(lambda a, b: jnp.where(done.reshape(-1, *[1] * (b.ndim - 1)), a, b), again, state)
        return (state, paced), (done, result.success, result.observation.sum())

    without = jax.jit(lambda state: jax.lax.scan(step, (state, None), keys))
    with_it = jax.jit(lambda state, paced: jax.lax.scan(step, (state, paced), keys))
    done, success, _ = without(first)[1]
    alone = jax.jit(
        lambda paced: jax.lax.scan(lambda s, now: (curriculum.step(s, *now), None), paced, (done, success))[0]
    )
    return lambda: without(first), lambda: with_it(first, paced), lambda: alone(paced)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    figures = {}
    for rule in (rules.Ability(), rules.Scout()):
        three = loops(rule, args.contexts, args.environments, args.window, args.calls)
        seconds = [[], [], []]
        after = jax.block_until_ready([loop() for loop in three])[2]
        for _ in range(args.rounds):
            for loop, times in zip(three, seconds, strict=True):
                begin = time.perf_counter()
                jax.block_until_ready(loop())
                times.append(1e6 * (time.perf_counter() - begin) / args.calls)
        without, with_it, alone = (round(min(times), 1) for times in seconds)
        windows = int(after.rule.statistics.window)
        figures[rule.key] = {"without_us": without, "with_us": with_it, "alone_us": alone, "windows": windows}
        print(
            f"{rule.key:8} per call of {args.environments} environments: {without:.0f} us without, {with_it:.0f} us "
            f"with, {alone:.0f} us the curriculum alone; {windows} windows closed in {args.calls} calls"
        )
    print(json.dumps({"backend": jax.default_backend(), **figures}))


if __name__ == "__main__":
    main()
