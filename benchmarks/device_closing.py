"""What closing a window costs: the rule takes its outcomes and gives the next distribution.

On NumPy, and on JAX and torch on the GPU where they see one. Best of ``--rounds``, in turns. ``operations`` are those
that torch starts one after the other: on a GPU at least one kernel each. The last line is JSON.

    python -m benchmarks.device_closing [--rule ability --contexts 1000 --sizes 64 1024 4096]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from scout_rl import Outcomes, rules

LEVELS = 5


def outcomes_of(contexts: int, size: int) -> Outcomes:
    rng = np.random.default_rng(0)
    cells = rng.integers(contexts, size=size), rng.integers(LEVELS, size=size)
    return Outcomes(*cells, rng.random(size) < 0.5, np.zeros(size), np.ones(size, bool))


def closings(rule, contexts: int, size: int):
    """By name: a function that closes one window and waits for it; and torch's without the wait."""
    import jax
    import jax.numpy as jnp
    import torch

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def tensors(value):
        if isinstance(value, tuple):
            return type(value)(*map(tensors, value))
        return torch.as_tensor(value, device=device)

    def close(state, outcomes):
        return rule.distribution(rule.update(state, outcomes))

    host = rule.init(contexts, LEVELS), outcomes_of(contexts, size)
    on_jax, on_torch = jax.tree.map(jnp.asarray, host), tuple(map(tensors, host))
    jitted = jax.jit(close)

    def torch_close():
        with torch.no_grad():
            return close(*on_torch)

    functions = {
        "numpy": lambda: close(*host),
        "jax": lambda: jitted(*on_jax).block_until_ready(),
        "torch": lambda: float(torch_close()[0, 0]),
    }
    return functions, torch_close


def operations(function) -> int:
    """How many operations torch starts."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += 1
            return function(*args, **(kwargs or {}))

    with Counting() as counting:
        function()
    return counting.count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rule", default="ability")
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[64, 256, 1024, 4096, 16384], help="outcomes per window"
    )
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    import jax

    print(f"{args.rule}, {args.contexts} contexts, {LEVELS} levels, {jax.devices()[0].device_kind}; ms per window")
    print("outcomes    numpy      jax    torch   operations of torch")
    figures = {}
    for size in args.sizes:
        functions, torch_close = closings(rules.make(args.rule), args.contexts, size)
        seconds: dict[str, list[float]] = {name: [] for name in functions}
        for function in functions.values():
            function()
        for _ in range(args.rounds):
            for name, function in functions.items():
                begin = time.perf_counter()
                function()
                seconds[name].append(time.perf_counter() - begin)
        best = {name: 1e3 * min(column) for name, column in seconds.items()}
        figures[size] = {**best, "operations": operations(torch_close)}
        print(
            f"{size:8}", *(f"{best[name]:8.2f}" for name in functions), f"{figures[size]['operations']:8}", flush=True
        )
    print(json.dumps({"backend": jax.default_backend(), **figures}))


if __name__ == "__main__":
    main()
