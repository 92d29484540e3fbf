"""The wrapper with Brax, MJX and Playground themselves: `make brax`, and `test_brax.py::test_brax_itself` runs this."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.envs.base import Env, PipelineEnv, State
from brax.io import mjcf
from brax.training.agents.ppo import train as ppo

from scout_rl import rules
from scout_rl.integrations.brax import INFO, BraxCurriculum

ROOT = Path(__file__).parents[2]


def pendulum():
    spec = importlib.util.spec_from_file_location("brax_pendulum", ROOT / "examples/brax_pendulum.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ppo_learns_with_ability_what_it_cannot_learn_from_the_target_start(tmp_path):
    curves = {}
    for rule in (rules.Ability(), rules.Target()):
        curve = curves[rule.key] = []
        curriculum, _, _, _ = pendulum().train(
            1_500_000,
            rule,
            seed=40,
            log_dir=tmp_path / rule.key,
            progress=lambda step, metrics, curve=curve: curve.append(metrics["eval/episode_scout_success"]),
        )
        assert len((tmp_path / rule.key / "windows.jsonl").read_text().splitlines()) == curriculum.drain().windows > 15
    assert curves["ability"][0] == 0
    assert curves["ability"][-1] > 0.6
    assert max(curves["target"]) < 0.05


XML = """<mujoco><option timestep="0.02"><flag contact="disable"/></option><worldbody>
<body><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/></body>
</worldbody><actuator><motor joint="joint" gear="2"/></actuator></mujoco>""".replace("<joint ", '<joint name="joint" ')


class Hinge(PipelineEnv):
    def __init__(self):
        super().__init__(mjcf.loads(XML), backend="mjx")

    def reset(self, rng):
        return self.at(jnp.zeros(()))

    def at(self, angle):
        simulator, zero = self.pipeline_init(jnp.array([angle]), jnp.zeros(1)), jnp.zeros(())
        return State(simulator, jnp.concatenate([simulator.q, simulator.qd]), zero, zero, {"success": zero}, {})

    def step(self, state, action):
        simulator = self.pipeline_step(state.pipeline_state, action)
        success = (jnp.abs(simulator.q[0]) < 0.1).astype(jnp.float32)
        state.metrics.update(success=success)
        obs = jnp.concatenate([simulator.q, simulator.qd])
        return state.replace(pipeline_state=simulator, obs=obs, reward=success, done=success)


def test_a_whole_state_of_mjx_is_restored():
    env = Hinge()
    angles = jnp.array([[0.0, 0.5, 1.0], [0.0, -0.5, -1.0]])
    ladder = jax.jit(jax.vmap(jax.vmap(env.at)))(angles)
    curriculum = BraxCurriculum(rules.Random(), ladder, "success", window=4)
    wrapped = curriculum.wrap(env, 5, 1)
    state, step, restarts = jax.jit(wrapped.reset)(jax.random.split(jax.random.PRNGKey(0), 4)), jax.jit(wrapped.step), 0
    for _ in range(12):
        state = step(state, jnp.ones((4, 1)))
        done, cells = np.asarray(state.done > 0), state.info[INFO].cells
        restarts += done.sum()
        for rung, leaf in zip(
            jax.tree.leaves(ladder.pipeline_state), jax.tree.leaves(state.pipeline_state), strict=True
        ):
            np.testing.assert_array_equal(
                np.asarray(rung[cells.context, cells.level])[done], np.asarray(leaf)[done], strict=True
            )
    assert restarts >= 8


def test_resets_between_evaluations_do_not_forget_the_curriculum():
    """`num_resets_per_eval` resets all environments on the host: the windows closed so far stay."""
    module = pendulum()
    env = module.Pendulum()
    curriculum = BraxCurriculum(rules.Aced(), module.make_ladder(env), "success", window=16)
    windows = []
    ppo.train(
        environment=env, wrap_env_fn=curriculum.wrap, num_timesteps=40_000, num_envs=64, episode_length=50,
        unroll_length=25, batch_size=64, num_minibatches=1, num_evals=3, num_eval_envs=8, num_resets_per_eval=2,
        progress_fn=lambda step, metrics: windows.append(int(curriculum.state.rule.statistics.window)),
    )  # fmt: skip
    assert windows[0] == 0 < windows[1] < windows[2]
    assert int(curriculum.state.rule.statistics.window) > 40_000 / 50 / 16 / 2


class Blink(Env):
    """The third step of an episode succeeds, and it goes on."""

    observation_size, action_size, backend = 1, 1, "none"

    def reset(self, rng):
        zero = jnp.zeros(())
        return State(zero, zero[None], zero, zero, {"success": zero}, {})

    def step(self, state, action):
        steps = state.pipeline_state + 1
        success = (steps == 3).astype(jnp.float32)
        state.metrics.update(success=success)
        return state.replace(pipeline_state=steps, obs=steps[None], reward=success)


@pytest.mark.parametrize("repeat", [1, 2, 4])
def test_a_success_counts_whichever_repetition_of_an_action_it_is_in(repeat, tmp_path):
    ladder = jax.vmap(jax.vmap(Blink().reset))(jax.random.split(jax.random.PRNGKey(0), (2, 2)))
    curriculum = BraxCurriculum(rules.Random(), ladder, "success", window=4, log_dir=tmp_path)
    wrapped = curriculum.wrap(Blink(), 8, repeat)
    state, step = jax.jit(wrapped.reset)(jax.random.split(jax.random.PRNGKey(0), 4)), jax.jit(wrapped.step)
    for _ in range(16 // repeat):
        state = step(state, jnp.zeros((4, 1)))
    assert curriculum.drain().windows == 2
    rows = [json.loads(line) for line in (tmp_path / "windows.jsonl").read_text().splitlines()]
    assert [row["success"] for row in rows] == [[1] * 4] * 2


def test_a_curriculum_whose_training_failed_after_its_reset_trains_no_environment_of_evaluation():
    module = pendulum()
    env = module.Pendulum()
    curriculum = BraxCurriculum(rules.Aced(), module.make_ladder(env), "success", window=16)
    train = functools.partial(
        ppo.train, environment=env, wrap_env_fn=curriculum.wrap, num_timesteps=1000, num_envs=16, episode_length=20,
        unroll_length=10, batch_size=16, num_minibatches=1,
    )  # fmt: skip
    with pytest.raises(TypeError):
        train(network_factory=None)
    with pytest.raises(ValueError, match="evaluation's environment is trained on, after a training that failed"):
        train()


def test_playground_s_own_wrapping_and_states():
    playground = pytest.importorskip("mujoco_playground", reason="Playground is not installed")
    from mujoco_playground._src.wrapper import wrap_for_brax_training

    env = playground.dm_control_suite.load("CartpoleSwingupSparse", config_overrides={"impl": "jax"})
    rungs = [jax.jit(env.reset)(jax.random.PRNGKey(i)) for i in range(6)]
    ladder = jax.tree.map(lambda *leaves: jnp.stack(leaves).reshape(2, 3, *leaves[0].shape), *rungs)
    curriculum = BraxCurriculum(
        rules.Random(), ladder, lambda state: state.reward > 0, window=4, library_wrap=wrap_for_brax_training
    )
    wrapped = curriculum.wrap(env, 4, 1)
    state, step, restarts = jax.jit(wrapped.reset)(jax.random.split(jax.random.PRNGKey(0), 4)), jax.jit(wrapped.step), 0
    for _ in range(9):
        state = step(state, jnp.ones((4, env.action_size)))
        done, cells = np.asarray(state.done > 0), state.info[INFO].cells
        restarts += done.sum()
        for part in ("qpos", "qvel", "xpos"):
            rung = getattr(ladder.data, part)[cells.context, cells.level]
            np.testing.assert_array_equal(np.asarray(rung)[done], np.asarray(getattr(state.data, part))[done])
    assert restarts == 8
    assert int(curriculum.state.rule.statistics.window) == 2
