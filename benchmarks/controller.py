"""One window of the controller (assign 16, report 16), beside a peer's sampler and a plain Python loop.

    make peers && .venv-peers/bin/python -m benchmarks.controller [--rounds 7]

The peer is JaxUED's LevelSampler, jitted, with one entry per context (we keep five levels for each): sample 16 levels,
update 16 scores. Where it is not installed it is skipped, with the reason. The Python loop is tests/rules/reference.py,
the specification written out. All are measured in turn, round after round, so that a busy machine slows all of them;
the figure is the median round. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from tests.rules.reference import ReferenceScout

from scout_rl import Curriculum, rules
from scout_rl.rules.cells import Outcomes

LEVELS, BATCH = 5, 16
SIZES = {100: 300, 10_000: 60, 1_000_000: 7}
"""Contexts: timed windows per round."""


def ours_numpy(n, rule=None):
    """`Curriculum` as people use it: validation, events and all."""
    curriculum = Curriculum(rule or rules.Scout(), n, LEVELS)
    rng = np.random.default_rng(0)

    def window():
        cells = curriculum.assign(BATCH)
        curriculum.report(cells, rng.random(BATCH) < 0.7)

    return window


def ours_jax(n):
    """The same functions, jitted into one call with the drawing on the device; the state is donated."""
    import jax
    import jax.numpy as jnp

    rule = rules.Scout()

    def step(state, key):
        draw, luck = jax.random.split(key)
        total = jnp.cumsum(rule.context_probabilities(state))
        context = jnp.searchsorted(total, jax.random.uniform(draw, (BATCH,)) * total[-1])
        context = jnp.minimum(context, n - 1)
        level = rule.frontier(state)[context].astype(jnp.int32)
        success = jax.random.uniform(luck, (BATCH,)) < 0.7
        outcomes = Outcomes(context, level, success, jnp.zeros(BATCH), jnp.ones(BATCH, bool))
        return rule.update(state, outcomes), success

    return jitted_window(step, jax.tree.map(jnp.asarray, rule.init(n, LEVELS)))


def ability_numpy(n):
    """The same with the rule that shares evidence."""
    return ours_numpy(n, rules.Ability())


def ability_jax(n):
    """The rule `ability`, jitted into one call with the drawing on the device; the state is donated."""
    import jax
    import jax.numpy as jnp

    rule = rules.Ability()

    def step(state, key):
        draw, luck = jax.random.split(key)
        total = jnp.cumsum(rule.distribution(state).reshape(-1))
        cell = jnp.searchsorted(total, jax.random.uniform(draw, (BATCH,)) * total[-1])
        context, level = jnp.divmod(jnp.minimum(cell, n * LEVELS - 1), LEVELS)
        success = jax.random.uniform(luck, (BATCH,)) < 0.7
        outcomes = Outcomes(context, level, success, jnp.zeros(BATCH), jnp.ones(BATCH, bool))
        return rule.update(state, outcomes), success

    return jitted_window(step, jax.tree.map(jnp.asarray, rule.init(n, LEVELS)))


def jitted_window(step, state):
    """``state, success = step(state, key)`` as a function of nothing, compiled, with the state donated."""
    import jax

    jitted = jax.jit(step, donate_argnums=0)
    box = [state, jax.random.key(0)]

    def window():
        box[1], key = jax.random.split(box[1])
        box[0], success = jitted(box[0], key)
        success.block_until_ready()

    return window


def jaxued(n):
    """Their buffer at the bank's size, full; scores updated for the sampled entries."""
    import jax
    import jax.numpy as jnp

    if not hasattr(jax, "tree_map"):
        jax.tree_map = jax.tree.map  # removed from JAX since their release
    from jaxued.level_sampler import LevelSampler

    sampler = LevelSampler(n, staleness_coeff=0.1)

    def step(state, key):
        draw, luck = jax.random.split(key)
        state, (index, _) = sampler.sample_replay_levels(state, draw, BATCH)
        return sampler.update_batch(state, index, jax.random.uniform(luck, (BATCH,))), index

    jitted = jax.jit(step, donate_argnums=0)
    start = sampler.initialize(jnp.int32(0))
    start = {**start, "scores": jax.random.uniform(jax.random.key(1), (n,)), "size": jnp.int32(n)}
    box = [{**start, "episode_count": jnp.int32(0)}, jax.random.key(0)]

    def window():
        box[1], key = jax.random.split(box[1])
        box[0], index = jitted(box[0], key)
        index.block_until_ready()

    return window


def python_loop(n):
    """The specification as scalar loops."""
    reference = ReferenceScout(n, LEVELS)
    rng = np.random.default_rng(0)

    def window():
        p = np.asarray(reference.probabilities())
        context = rng.choice(n, BATCH, p=p / p.sum())
        reference.update([(x, reference.f[x], r) for x, r in zip(context, rng.random(BATCH) < 0.7, strict=True)])

    return window


def seconds(window, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        window()
    return (time.perf_counter() - start) / repeats


def bytes_per_context(rule, n=100_000):
    """The state that a curriculum keeps between windows."""
    arrays = Curriculum(rule, n, LEVELS).state_dict()["arrays"]
    return sum(array.nbytes for array in arrays.values()) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    n_rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    contenders = {"scout numpy": ours_numpy, "scout jax": ours_jax, "jaxued jax": jaxued, "python loop": python_loop}
    contenders |= {"ability numpy": ability_numpy, "ability jax": ability_jax}
    median = {}
    for n, repeats in SIZES.items():
        ready = {}
        for name, make in contenders.items():
            if name == "python loop" and n > 10_000:
                continue  # minutes per round; linear from 10,000 on
            if name == "jaxued jax" and n > 10_000:
                continue  # compared at 10,000
            try:
                ready[name] = make(n)
            except ModuleNotFoundError as missing:
                print(f"{name} skipped at {n}: {missing.name} is not installed (make peers)")
        for window in ready.values():
            seconds(window, 3)  # compile, warm up
        counts = {name: max(1, repeats // 20) if name == "python loop" else repeats for name in ready}
        rounds = {name: [] for name in ready}
        for _ in range(n_rounds):
            for name, window in ready.items():
                rounds[name].append(seconds(window, counts[name]))
        for name, times in rounds.items():
            median[name, n] = float(np.median(times))
    print(f"\none window: assign {BATCH}, report {BATCH}; {LEVELS} levels; median of {n_rounds} interleaved rounds\n")
    print(f"{'contexts':>12}" + "".join(f"{name:>16}" for name in contenders))
    for n in SIZES:
        cells = [f"{median[name, n] * 1e6:,.0f} us" if (name, n) in median else "-" for name in contenders]
        print(f"{n:>12,}" + "".join(f"{cell:>16}" for cell in cells))
    ours = min(median["scout numpy", 10_000], median["scout jax", 10_000])
    peer = median.get(("jaxued jax", 10_000))
    best_large = min(median["scout numpy", 1_000_000], median["scout jax", 1_000_000])
    result = {
        "us_per_window_100": round(median["scout numpy", 100] * 1e6, 1),
        "us_per_window_100_jax": round(median["scout jax", 100] * 1e6, 1),
        "ms_per_window_1e6": round(median["scout numpy", 1_000_000] * 1e3, 1),
        "ms_per_window_1e6_best": round(best_large * 1e3, 1),
        "speedup_vs_peer_1e4": None if peer is None else round(peer / ours, 2),
        "speedup_numpy_vs_peer_1e4": None if peer is None else round(peer / median["scout numpy", 10_000], 2),
        "speedup_vs_python_loop_1e4": round(median["python loop", 10_000] / ours, 1),
        "cost_ratio_1e6_to_1e4": round(median["scout numpy", 1_000_000] / median["scout numpy", 10_000], 1),
        "bytes_per_context": round(bytes_per_context(rules.Scout()), 1),
        "ability_us_per_window_100": round(median["ability numpy", 100] * 1e6, 1),
        "ability_ms_per_window_1e6": round(median["ability numpy", 1_000_000] * 1e3, 1),
        "ability_ms_per_window_1e6_jax": round(median["ability jax", 1_000_000] * 1e3, 1),
        "ability_bytes_per_context": round(bytes_per_context(rules.Ability()), 1),
    }
    print()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
