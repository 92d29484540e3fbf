"""What a curriculum costs in a PPO training of Brax: one run with it and one with Brax's own autoreset, in turns.

    make brax
    .venv-brax/bin/python -m benchmarks.brax_overhead --envs 4096 --contexts 1000 --rounds 3

Environment and networks are those of examples/brax_pendulum.py, which cost next to nothing: the worst case.
Each round trains both; the first two epochs, which compile, are left out.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import statistics
import sys


def seconds(wrap, envs: int, iterations: int) -> list[float]:
    """Of every epoch of ``iterations`` PPO iterations but the first two, which compile."""
    from brax.training.agents.ppo import networks
    from brax.training.agents.ppo import train as ppo
    from examples.brax_pendulum import EPISODE, Pendulum

    walls: list[float] = []
    ppo.train(
        environment=Pendulum(),
        wrap_env_fn=wrap,
        num_timesteps=4 * iterations * envs * 20,
        num_envs=envs,
        episode_length=EPISODE,
        unroll_length=20,
        num_minibatches=8,
        batch_size=envs // 8,
        num_updates_per_batch=4,
        network_factory=functools.partial(
            networks.make_ppo_networks, policy_hidden_layer_sizes=(64, 64), value_hidden_layer_sizes=(64, 64)
        ),
        num_evals=5,
        num_eval_envs=8,
        progress_fn=lambda step, metrics: walls.append(metrics.get("training/walltime", 0.0)),
    )
    epochs = [after - before for before, after in itertools.pairwise(walls)]
    return [epoch / iterations for epoch in epochs[2:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=4, help="per epoch; each run has four epochs")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if importlib.util.find_spec("brax") is None:
        sys.exit(print("brax is not installed here: make brax, then .venv-brax/bin/python -m benchmarks.brax_overhead"))
    import jax
    import jax.numpy as jnp
    from brax.envs.wrappers.training import wrap
    from examples import brax_pendulum

    from scout_rl import rules
    from scout_rl.integrations.brax import BraxCurriculum

    brax_pendulum.MOTORS = jnp.linspace(2.0, 1.5, args.contexts)
    ladder = jax.jit(lambda: brax_pendulum.make_ladder(brax_pendulum.Pendulum()))()
    ratios = []
    for _ in range(args.rounds):
        without = statistics.median(seconds(wrap, args.envs, args.iterations))
        curriculum = BraxCurriculum(rules.Ability(), ladder, "success")
        with_it = statistics.median(seconds(curriculum.wrap, args.envs, args.iterations))
        ratios.append(with_it / without)
        windows = int(curriculum.state.rule.statistics.window)
        print(f"iteration: {without:.3f} s without, {with_it:.3f} s with; {windows} windows closed", flush=True)
    share = 100 * (statistics.median(ratios) - 1)
    device = jax.devices()[0].device_kind
    print(f"{args.envs} environments, {args.contexts} contexts, 5 levels, {device}: {share:+.1f}% of an iteration")


if __name__ == "__main__":
    main()
