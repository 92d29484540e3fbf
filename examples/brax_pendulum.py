"""Brax PPO, a sparse reward, and a curriculum that stays on the device.

    python examples/brax_pendulum.py               # with SCOUT: minutes on two CPU cores
    python examples/brax_pendulum.py --plain       # the same PPO from the target start: never sees a reward
    python examples/brax_pendulum.py --envs 4096   # on a GPU

A pendulum hangs, and its motor is too weak to lift it: it must swing up. The reward comes at the top alone. A context
is a motor, from a fifth of gravity's torque down to 15%. A level is how far up the pendulum is released.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
from brax.envs.base import Env, State
from brax.training.agents.ppo import networks
from brax.training.agents.ppo import train as ppo

from scout_rl import rules
from scout_rl.integrations.brax import BraxCurriculum

GRAVITY, STEP = 9.81, 0.05
MOTORS = jnp.linspace(2.0, 1.5, 8)  # the largest torque of each context; gravity's is 9.81
RELEASED = jnp.array([0.0, 0.8, 1.6, 2.2, 2.7])  # radians from hanging, by level; level 0 is the target start
EPISODE = 200  # steps: ten seconds


class Pendulum(Env):
    """One pendulum as a Brax environment: angle and speed are its simulator's state, the motor is in ``info``."""

    observation_size, action_size, backend = 4, 1, "none"

    def reset(self, rng):
        return self.released(0, 0)

    def released(self, context, level):
        """The reset operator: a state of this context at this level."""
        motor, zero = MOTORS[context], jnp.zeros(())
        simulator = jnp.array([RELEASED[level], 0.0])
        return State(simulator, self.observe(simulator, motor), zero, zero, {"success": zero}, {"motor": motor})

    def step(self, state, action):
        (angle, speed), motor = state.pipeline_state, state.info["motor"]
        speed = speed + STEP * (motor * jnp.clip(action[0], -1, 1) - GRAVITY * jnp.sin(angle))
        simulator = jnp.array([angle + STEP * speed, speed])
        success = (jnp.cos(simulator[0]) < -0.95).astype(jnp.float32)
        state.metrics.update(success=success)
        return state.replace(pipeline_state=simulator, obs=self.observe(simulator, motor), reward=success, done=success)

    def observe(self, simulator, motor):
        angle, speed = simulator
        return jnp.array([jnp.cos(angle), jnp.sin(angle), speed / 5, motor])


def make_ladder(env):
    """A stack of states, ``[contexts, levels]``."""
    levels = jax.vmap(env.released, (None, 0))
    return jax.vmap(levels, (0, None))(jnp.arange(len(MOTORS)), jnp.arange(len(RELEASED)))


def train(steps, rule, seed=0, log_dir=None, envs=512, evaluations=10, progress=lambda step, metrics: None):
    """Return the curriculum, and what Brax's training returns: the policy, its parameters, the last metrics."""
    env = Pendulum()
    curriculum = BraxCurriculum(rule, make_ladder(env), "success", seed=seed, log_dir=log_dir)

    def report(step, metrics):
        if log_dir is not None:
            curriculum.drain()  # what has closed so far goes to the disk
        progress(step, metrics)

    trained = ppo.train(
        environment=env,
        wrap_env_fn=curriculum.wrap,
        num_timesteps=steps,
        num_envs=envs,
        episode_length=EPISODE,
        unroll_length=20,
        num_minibatches=8,
        batch_size=envs // 4,
        num_updates_per_batch=4,
        learning_rate=1e-3,
        entropy_cost=1e-2,
        discounting=0.99,
        normalize_observations=True,
        network_factory=functools.partial(
            networks.make_ppo_networks, policy_hidden_layer_sizes=(64, 64), value_hidden_layer_sizes=(64, 64)
        ),
        num_evals=evaluations + 1,
        num_eval_envs=16 * len(MOTORS),
        seed=seed,
        progress_fn=report,
    )
    return curriculum, *trained


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--envs", type=int, default=512, help="a multiple of 4; 4096 on a GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="train from the target start alone")
    parser.add_argument("--log-dir", type=Path)
    args = parser.parse_args()

    def progress(step, metrics):
        print(f"{step:9d} steps: success from the target start {metrics['eval/episode_scout_success']:.2f}", flush=True)

    rule = rules.Target() if args.plain else rules.Ability()
    curriculum, *_ = train(args.steps, rule, args.seed, args.log_dir, args.envs, progress=progress)
    print(f"frontier: {None if curriculum.frontier is None else curriculum.frontier.tolist()}")
