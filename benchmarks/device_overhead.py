"""What a device curriculum adds to a step of our JAX MiniGrid: the same compiled loop with and without it, in turn.

    python -m benchmarks.device_overhead [--environments 4096 --contexts 1000 --window 1024]

Random actions on DoorKey 8x8 with 100 steps; environments are out of step with each other. Five loops are measured in
turns, round after round: a step without a curriculum (a finished environment starts again from its own cell); for
`ability` and `scout` a step with it (the environment gets its next cell, and windows close), and the curriculum alone
on the ends and outcomes of the first loop. On a busy machine the difference of the first two is smaller than their
noise: then the third is the figure. Best and median of the rounds are printed. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
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


def prepared(n_contexts: int, n: int, window: int, calls: int):
    """A function of a rule: ``calls`` steps with it, and it alone, without arguments; and the steps without a rule."""
    simulator, starts = starts_of(n_contexts)
    keys = jax.random.split(jax.random.key(2), calls)

    def made(rule):
        return JaxCurriculum(rule, n_contexts, LEVELS, environments=n, longest=simulator.max_steps, window=window)

    paced = made(rules.Random()).init(jax.random.key(0))
    own = paced.context * LEVELS + paced.level
    first = jax.tree.map(lambda a: a[own], starts)
    first = first._replace(step_count=jax.random.randint(jax.random.key(1), (n,), 0, simulator.max_steps))

    def steps(curriculum, state, paced):
        def step(carry, key):
            state, paced = carry
            state, result = jax.vmap(simulator.step)(state, jax.random.randint(key, (n,), 0, 7))
            done, cell = result.terminated | result.truncated, own
            if curriculum is not None:
                paced = curriculum.step(paced, done, result.success)
                cell = paced.context * LEVELS + paced.level
            again = jax.tree.map(lambda a: a[cell], starts)
            state = jax.tree.map(lambda a, b: jnp.where(done.reshape(-1, *[1] * (b.ndim - 1)), a, b), again, state)
            return (state, paced), (done, result.success, result.observation.sum())

        return jax.lax.scan(step, (state, paced), keys)

    plain = jax.jit(lambda state: steps(None, state, None))
    done, success, _ = plain(first)[1]

    def of(rule):
        curriculum = made(rule)
        paced = curriculum.init(jax.random.key(0))
        with_it = jax.jit(lambda state, paced: steps(curriculum, state, paced))
        alone = jax.jit(
            lambda paced: jax.lax.scan(lambda s, now: (curriculum.step(s, *now), None), paced, (done, success))[0]
        )
        return lambda: with_it(first, paced), lambda: alone(paced)

    return lambda: plain(first), of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--alone", action="store_true", help="measure only the curriculum alone")
    args = parser.parse_args()
    plain, of = prepared(args.contexts, args.environments, args.window, args.calls)
    loops, windows = {} if args.alone else {"without": plain}, {}
    for rule in (rules.Ability(), rules.Scout()):
        with_it, alone = of(rule)
        loops |= {} if args.alone else {f"{rule.key} with": with_it}
        loops[f"{rule.key} alone"] = alone
        windows[rule.key] = int(alone().rule.statistics.window)
    for loop in loops.values():
        jax.block_until_ready(loop())
    micros: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(args.rounds):
        for name, loop in loops.items():
            begin = time.perf_counter()
            jax.block_until_ready(loop())
            micros[name].append(1e6 * (time.perf_counter() - begin) / args.calls)
    figures = {name: {"best_us": min(times), "median_us": statistics.median(times)} for name, times in micros.items()}
    device = jax.devices()[0].device_kind
    print(f"per call of {args.environments} environments, {args.contexts} contexts, {LEVELS} levels, {device}:")
    for name, figure in figures.items():
        print(f"  {name:13} {figure['best_us']:7.1f} us at best, {figure['median_us']:7.1f} us in the median")
    print(f"  windows closed in {args.calls} calls: {windows}")
    print(json.dumps({"backend": jax.default_backend(), "device": device, "windows": windows, **figures}))


if __name__ == "__main__":
    main()
