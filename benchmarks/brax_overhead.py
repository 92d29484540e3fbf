"""What a curriculum costs in a PPO training of Brax: trainings with it and one with Brax's own autoreset, in turns.

    make brax
    .venv-brax/bin/python -m benchmarks.brax_overhead --task ant --envs 4096 --contexts 1000 --window 0 1024

All trainings run in one process, one per ``--window`` and one without a curriculum. Their first two
epochs compile, side by side, and are left out. Then they take turns epoch by epoch, so that all meet the same machine.
Every round gives one ratio per window: time with the curriculum / time without.

``--task pendulum`` is examples/brax_pendulum.py, whose environment and networks cost next to nothing: the worst case.
``ant``, ``halfcheetah`` and ``humanoid`` are Brax's own, with the batch sizes of its training notebook for ant and
episodes of 200 steps, on ``--backend`` mjx, generalized, spring or positional. A context is a perturbed start there,
and an easier level starts with more speed forward.

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
    """Threads, of which one runs at a time once all have compiled. One that has ended or failed has no turn."""

    def __init__(self, n: int) -> None:
        self.changed, self.waiting, self.queue = threading.Condition(), set(range(n)), list(range(n))

    def take(self, who: int) -> None:
        """Wait until all have compiled and it is this one's turn."""
        with self.changed:
            self.waiting.discard(who)
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.waiting and self.queue[0] == who)

    def hand_over(self, who: int, ended: bool = False) -> None:
        with self.changed:
            self.waiting.discard(who)
            self.queue.remove(who)
            self.queue += [] if ended else [who]
            self.changed.notify_all()


def epochs_in_turns(trainings: dict, epochs: int) -> dict[str, np.ndarray]:
    """The seconds of every epoch of all trainings by name: functions of what is called after an epoch."""
    turns, errors = Turns(len(trainings)), []
    walls: dict[str, list[float]] = {name: [0.0] for name in trainings}

    def run(who: int, name: str) -> None:
        def after(step, metrics) -> None:
            walls[name].append(metrics["training/walltime"])
            epoch = len(walls[name]) - 1
            print(f"{name}: epoch {epoch}, {walls[name][-1] - walls[name][-2]:.3f} s", flush=True)
            if epoch > LEFT_OUT:
                turns.hand_over(who)
            if LEFT_OUT <= epoch < epochs:
                turns.take(who)

        try:
            trainings[name](after)
        except Exception as error:
            errors.append(error)
            raise
        finally:
            turns.hand_over(who, ended=True)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(trainings)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit(f"a training failed: {errors[0]!r}")
    return {name: np.diff(column)[:epochs] for name, column in walls.items()}


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
    """Perturbed starts, easier ones with more speed; success is to run at 4 metres per second."""
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
        action = [jnp.zeros(env.action_size)] if task == "humanoid" else []
        return state.replace(pipeline_state=simulator, obs=env._get_obs(simulator, *action))

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
    parser.add_argument("--task", choices=("pendulum", "ant", "halfcheetah", "humanoid"), default="pendulum")
    parser.add_argument("--backend", choices=("mjx", "generalized", "spring", "positional"), default="mjx")
    parser.add_argument("--rule", default="ability")
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--contexts", type=int, default=1000)
    text = "outcomes per window, one training for each; 0: one per environment"
    parser.add_argument("--window", type=int, nargs="+", default=[0], help=text)
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
    curricula = {n: BraxCurriculum(rules.make(args.rule), ladder, success, window=n) for n in args.window}
    wraps = {"without": wrap} | {f"window {n or args.envs}": c.wrap for n, c in curricula.items()}
    epochs = args.rounds + LEFT_OUT
    trainings = {name: training(env, w, options, args.envs, args.iterations, epochs) for name, w in wraps.items()}
    seconds = {name: column[LEFT_OUT:] / args.iterations for name, column in epochs_in_turns(trainings, epochs).items()}
    without = seconds.pop("without")
    figures = {
        "task": args.task,
        "backend": "none" if args.task == "pendulum" else args.backend,
        "rule": args.rule,
        "envs": args.envs,
        "contexts": args.contexts,
        "levels": LEVELS,
        "device": jax.devices()[0].device_kind,
        "steps_per_iteration": options["unroll_length"] * options["num_minibatches"] // options["minibatch"],
        "without_ms": round(1e3 * float(np.median(without)), 3),
    }
    print(
        f"{args.task}, {args.envs} environments, {args.contexts} contexts, {LEVELS} levels, {args.rule}, "
        f"{figures['device']}: an iteration takes {figures['without_ms']} ms without"
    )
    for (name, column), curriculum in zip(seconds.items(), curricula.values(), strict=True):
        ratios = column / without
        ratio, (low, high) = float(np.median(ratios)), interval(ratios)
        windows = int(curriculum.state.rule.statistics.window)
        figures[name] = {
            "windows": windows,
            "iteration_ms": round(1e3 * float(np.median(column)), 3),
            "ratio": [round(x, 4) for x in (ratio, low, high)],
            "ratios": [round(float(x), 4) for x in ratios],
        }
        print(
            f"{name}: {figures[name]['iteration_ms']} ms with; {100 * (ratio - 1):+.2f}% "
            f"(95% {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f}%); {windows} windows closed"
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
