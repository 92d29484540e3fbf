"""Drawing cells on the device: ``categorical`` beside a search in the running sum of the distribution.

``categorical`` makes a random number for every draw and every cell, the search one per draw. Best of ``--rounds``.

    python -m benchmarks.device_draw
"""

from __future__ import annotations

import argparse
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--levels", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()

    import jax
    import jax.numpy as jnp

    p = jax.random.uniform(jax.random.key(0), (args.contexts * args.levels,))

    @jax.jit
    def categorical(key):
        return jax.random.categorical(key, jnp.log(p), shape=(args.draws,))

    @jax.jit
    def search(key):
        total = jnp.cumsum(p)
        cell = jnp.searchsorted(total, jax.random.uniform(key, (args.draws,)) * total[-1], side="right")
        return jnp.minimum(cell, p.size - 1)

    print(f"{args.draws} draws over {args.contexts} contexts x {args.levels} levels, {jax.default_backend()}")
    for draw in (categorical, search):
        draw(jax.random.key(0)).block_until_ready()
        seconds = []
        for i in range(args.rounds):
            key = jax.random.key(i)
            start = time.perf_counter()
            draw(key).block_until_ready()
            seconds.append(time.perf_counter() - start)
        print(f"{draw.__name__:12} {1000 * min(seconds):8.2f} ms")


if __name__ == "__main__":
    main()
