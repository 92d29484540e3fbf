"""What a curriculum costs in a PPO training of Brax: one training with it and one with Brax's own autoreset, in turns.

    make brax
    .venv-brax/bin/python -m benchmarks.brax_overhead --task ant --envs 4096 --contexts 1000

Both trainings run in one process. They take turns epoch by epoch, so that both meet the same machine; the first two
epochs of each, which compile, are left out. Every round gives one ratio: time with the curriculum / time without.

``--task pendulum`` is examples/brax_pendulum.py, whose environment and networks cost next to nothing: the worst case.
``ant`` and ``halfcheetah`` are Brax's own, with the batch sizes of its training notebook for ant and episodes of 200
steps, on ``--backend`` mjx, generalized, spring or positional. A context is a perturbed start there, and an easier
level starts with more speed forward.

Brax 0.14.2 fails on JAX 0.10 and later. Here it runs on them: see `with_removed_names_of_jax`.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import sys
import threading
import time

import numpy as np

LEVELS, EPISODE, LEFT_OUT = 5, 200, 2


def with_removed_names_of_jax() -> None:
    """Put back the one name that Brax 0.14.2 uses and JAX 0.10 has removed: copies of a tree, one per device."""
    import jax
    import jax.numpy as jnp

    if not hasattr(jax, "device_put_replicated"):
        jax.device_put_replicated = lambda tree, devices: jax.tree.map(lambda a: jnp.stack([a] * len(devices)), tree)


class Turns:
    """Two threads, of which one runs at a time. One that has ended, also with an error, gives up its turns."""

    def __init__(self) -> None:
        self.changed, self.now, self.ended = threading.Condition(), 0, set()

    def wait_for(self, who: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.now == who or 1 - who in self.ended)

    def hand_over(self, who: int, ended: bool = False) -> None:
        with self.changed:
            self.now = 1 - who
            self.ended |= {who} if ended else set()
            self.changed.notify_all()


def epochs_in_turns(trainings, epochs: int) -> list[list[float]]:
    """The seconds of every epoch of both trainings: functions of what is called after an epoch."""
    turns, walls, errors = Turns(), [[0.0], [0.0]], []

    def run(who: int) -> None:
        def after(step, metrics) -> None:
            walls[who].append(metrics["training/walltime"])
            if len(walls[who]) == 2:
                print(f"{('without', 'with')[who]}: first epoch, compiled, {walls[who][1]:.1f} s", flush=True)
            turns.hand_over(who)
            turns.wait_for(who)

        turns.wait_for(who)
        try:
            trainings[who](after)
        except Exception as error:
            errors.append(error)
            raise
        finally:
            turns.hand_over(who, ended=True)

    threads = [threading.Thread(target=run, args=(who,), daemon=True) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit(f"a training failed: {errors[0]!r}")
    return [np.diff(column)[:epochs] for column in walls]


def pendulum(contexts: int, backend: str):
    """Environment, ladder, success, and what PPO is called with."""
    import jax
    import jax.numpy as jnp
    from brax.training.agents.ppo import networks
    from examples import brax_pendulum

    brax_pendulum.MOTORS = jnp.linspace(2.0, 1.5, contexts)
    env = brax_pendulum.Pendulum()
    sizes = {"policy_hidden_layer_sizes": (64, 64), "value_hidden_layer_sizes": (64, 64)}
    options = {
        "unroll_length": 20,
        "num_minibatches": 8,
        "minibatch": 8,
        "num_updates_per_batch": 4,
        "network_factory": functools.partial(networks.make_ppo_networks, **sizes),
    }
    return env, jax.jit(lambda: brax_pendulum.make_ladder(env))(), "success", options


def runner(task: str, contexts: int, backend: str):
    """Ant or half-cheetah: perturbed starts, easier ones with more speed; success is to run at 4 metres per second."""
    import jax
    import jax.numpy as jnp
    from brax import envs

    env = envs.get_environment(task, backend=backend)

    def start(key, level):
        """The environment's own random start, with speed along x: its observation follows."""
        state = env.reset(key)
        simulator = state.pipeline_state
        speed = simulator.qd.at[0].add(level.astype(simulator.qd.dtype))
        simulator = env.pipeline_init(simulator.q, speed)
        observe = functools.partial(env._get_obs, simulator)
        return state.replace(pipeline_state=simulator, obs=observe())

    keys, levels = jax.random.split(jax.random.PRNGKey(0), contexts), jnp.arange(LEVELS)
    ladder = jax.jit(jax.vmap(jax.vmap(start, (None, 0)), (0, None)))(keys, levels)
    options = {"unroll_length": 5, "num_minibatches": 32, "minibatch": 2, "num_updates_per_batch": 4}
    options |= {"normalize_observations": True, "reward_scaling": 10, "discounting": 0.97}
    return env, ladder, lambda state: state.metrics["x_velocity"] > 4, options


def training(env, wrap, options: dict, envs: int, iterations: int, epochs: int):
    """A PPO training of so many epochs, as a function of what is called after each; nothing is evaluated."""
    from brax.training.agents.ppo import train as ppo

    options = dict(options)
    batch = envs // options.pop("minibatch")
    steps = batch * options["num_minibatches"] * options["unroll_length"]
    return lambda after: ppo.train(
        environment=env,
        wrap_env_fn=wrap,
        num_timesteps=epochs * iterations * steps,
        num_envs=envs,
        batch_size=batch,
        episode_length=EPISODE,
        learning_rate=3e-4,
        entropy_cost=1e-2,
        num_evals=epochs + 1,
        num_eval_envs=8,
        run_evals=False,
        max_devices_per_host=1,
        progress_fn=after,
        **options,
    )


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """The 95% bootstrap interval of their median."""
    drawn = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("pendulum", "ant", "halfcheetah"), default="pendulum")
    parser.add_argument("--backend", choices=("mjx", "generalized", "spring", "positional"), default="mjx")
    parser.add_argument("--rule", default="ability")
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    parser.add_argument("--window", type=int, default=0, help="outcomes per window; 0: a quarter of the environments")
    parser.add_argument("--iterations", type=int, default=4, help="PPO iterations per epoch")
    parser.add_argument("--rounds", type=int, default=9, help="epochs of each that count")
    args = parser.parse_args()
    if importlib.util.find_spec("brax") is None:
        sys.exit(print("brax is not installed here: make brax, then .venv-brax/bin/python -m benchmarks.brax_overhead"))
    with_removed_names_of_jax()
    import jax
    from brax.envs.wrappers.training import wrap

    from scout_rl import rules
    from scout_rl.integrations.brax import BraxCurriculum

    begin = time.perf_counter()
    if args.task == "pendulum":
        env, ladder, success, options = pendulum(args.contexts, args.backend)
    else:
        env, ladder, success, options = runner(args.task, args.contexts, args.backend)
    jax.block_until_ready(ladder)
    print(f"{args.task}: ladder of {args.contexts} contexts made in {time.perf_counter() - begin:.1f} s", flush=True)
    curriculum = BraxCurriculum(rules.make(args.rule), ladder, success, window=args.window)
    epochs = args.rounds + LEFT_OUT
    both = [training(env, w, options, args.envs, args.iterations, epochs) for w in (wrap, curriculum.wrap)]
    without, with_it = (column[LEFT_OUT:] / args.iterations for column in epochs_in_turns(both, epochs))
    ratios = with_it / without
    low, high = interval(ratios)
    figures = {
        "task": args.task,
        "backend": "none" if args.task == "pendulum" else args.backend,
        "rule": args.rule,
        "envs": args.envs,
        "contexts": args.contexts,
        "levels": LEVELS,
        "window": args.window or args.envs // 4,
        "device": jax.devices()[0].device_kind,
        "steps_per_iteration": options["unroll_length"] * options["num_minibatches"] // options["minibatch"],
        "windows": int(curriculum.state.rule.statistics.window),
        "iteration_ms": [round(1e3 * float(np.median(column)), 3) for column in (without, with_it)],
        "ratio": [round(x, 4) for x in (float(np.median(ratios)), low, high)],
        "ratios": [round(float(x), 4) for x in ratios],
    }
    print(
        f"{args.task}, {args.envs} environments, {args.contexts} contexts, {LEVELS} levels, {args.rule}, "
        f"{figures['device']}: an iteration takes {figures['iteration_ms'][0]} ms without and "
        f"{figures['iteration_ms'][1]} ms with; {100 * (np.median(ratios) - 1):+.2f}% "
        f"(95% {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f}%); {figures['windows']} windows closed"
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
