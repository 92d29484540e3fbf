"""SB3 (real, on the CPU): cells are the true starts in every vector environment, and a saved run continues."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.callbacks import BaseCallback, EvalCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize  # noqa: E402

from scout_rl.integrations.gymnasium import LEVEL, Assignments  # noqa: E402
from scout_rl.integrations.sb3 import (  # noqa: E402
    CurriculumCallback,
    assignments_of,
    evaluate,
    load,
    save,
    target_env,
    with_curriculum,
)
from tests.integrations.probes import CONTEXTS, GoalProbe, Probe, Spy, reset_to, truth  # noqa: E402

N = 3


def wrapped(curriculum, kind=Probe, cls=DummyVecEnv):
    kwargs = {"start_method": "fork"} if cls is SubprocVecEnv else {}
    return with_curriculum([kind] * N, curriculum, reset_to, "is_success", vec_env_cls=cls, vec_env_kwargs=kwargs)


@pytest.mark.parametrize("kind", [Probe, GoalProbe])
@pytest.mark.parametrize("cls", [DummyVecEnv, SubprocVecEnv])
def test_every_episode_is_reported_once_with_the_cell_it_started_from(cls, kind):
    curriculum = Spy()
    env = wrapped(curriculum, kind, cls)
    ended = []
    env.seed(0)
    for _ in range(3):  # resets in the middle: partial episodes count for nothing
        env.reset()
        for _ in range(60):
            _, _, dones, infos = env.step(np.zeros(N, int))
            ended += [truth(infos[i]["terminal_observation"]) for i in np.flatnonzero(dones)]
    assert len(ended) > 60
    assert curriculum.recorded == ended
    assignments = assignments_of(env)
    assert assignments.dropped > 0
    assert (assignments.staleness.mean > 0) == (cls is SubprocVecEnv)
    env.close()
    if cls is SubprocVecEnv:
        assert assignments.in_flight == []


def test_a_vector_environment_of_this_process_is_wrapped_in_place():
    curriculum = Spy()
    inner = VecNormalize(make_vec_env(Probe, n_envs=2))
    env = with_curriculum(inner, curriculum, reset_to, "is_success")
    env.reset()
    while len(curriculum.recorded) < 5:
        env.step(np.zeros(2, int))
    assert assignments_of(VecNormalize(env)).finished == 5 or len(curriculum.recorded) >= 5
    with pytest.raises(ValueError, match="already"):
        with_curriculum(inner, curriculum, reset_to, "is_success")


def test_environments_out_of_reach_are_refused():
    env = SubprocVecEnv([Probe], start_method="fork")
    with pytest.raises(ValueError, match=r"vec_env_cls=SubprocVecEnv"):
        with_curriculum(env, Spy(), reset_to, "is_success")
    with pytest.raises(ValueError, match="no curriculum"):
        assignments_of(env)
    env.close()


def test_the_evaluation_environment_is_at_level_0_for_sb3_s_own_callback_too():
    levels = []

    def spying_reset_to(env, context, level):
        levels.append(level)
        return reset_to(env, context, level)

    eval_env = target_env(Probe, spying_reset_to, range(CONTEXTS), "is_success")
    model = sb3.PPO("MlpPolicy", wrapped(Spy()), n_steps=32, batch_size=32, n_epochs=1, device="cpu")
    model.learn(64, callback=EvalCallback(eval_env, eval_freq=16, n_eval_episodes=4, verbose=0))
    success = evaluate(model, eval_env)
    assert list(success) == list(range(CONTEXTS))
    assert len(levels) > CONTEXTS
    assert set(levels) == {0}


class Logged(BaseCallback):
    """The newest value of everything that was logged; SB3 forgets them at every dump."""

    def _on_training_start(self) -> None:
        self.values = {}

    def _on_step(self) -> bool:
        self.values |= self.logger.name_to_value
        return True

    def _on_rollout_end(self) -> None:
        self.values |= self.logger.name_to_value


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_the_logger_hears_where_the_curriculum_stands(algorithm):
    curriculum = Spy(window=2)
    logged = Logged()
    group = ["near"] * 3 + ["far"] * 3
    eval_env = target_env(Probe if algorithm == "PPO" else BoxProbe, reset_to, range(CONTEXTS), "is_success")
    callback = CurriculumCallback(evaluation_group=group, eval_env=eval_env, eval_every=300)
    if algorithm == "PPO":
        model = sb3.PPO("MlpPolicy", wrapped(curriculum), n_steps=100, batch_size=50, n_epochs=1, seed=0, device="cpu")
    else:
        model = sb3.SAC("MlpPolicy", wrapped(curriculum, BoxProbe), learning_starts=900, seed=0, device="cpu")
    model.learn(900, callback=[callback, logged])
    values = logged.values
    assert values["scout/mean_frontier"] == pytest.approx(curriculum.frontier.mean(), abs=0.5)
    assert 0 <= values["scout/share_at_target"] <= 1
    assert values["scout/windows"] > 50
    assert {"scout/eval_success/near", "scout/eval_success/far", "scout/eval_worst_group"} <= set(values)
    assert any(name.startswith("scout/success_level0/") for name in values)
    assert len(callback.evaluations) == 3


class BoxProbe(Probe):
    """The probe with continuous actions, for SAC."""

    import gymnasium as gym

    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)


def test_groups_of_the_wrong_length_are_refused():
    model = sb3.PPO("MlpPolicy", wrapped(Spy()), n_steps=32, batch_size=32, device="cpu")
    with pytest.raises(ValueError, match="there are 6 contexts"):
        model.learn(32, callback=CurriculumCallback(evaluation_group=[0, 1]))


# -- saved in the middle, loaded in a new process ------------------------------------------------------------------


class Sure(Probe):
    """Three steps an episode; its outcome depends on its cell alone, so any policy gives the same outcomes."""

    def step(self, action):
        self.state[2] += 1
        done = bool(self.state[2] >= 3)
        return self.observe(), 0.0, done, False, {"is_success": done and (self.state[0] + self.state[1]) % 3 != 0}


def sure_model(cls, path=None):
    curriculum = Spy(seed=5, window=4)
    kwargs = {"start_method": "fork"} if cls is SubprocVecEnv else {}
    env = with_curriculum([Sure] * N, curriculum, reset_to, "is_success", vec_env_cls=cls, vec_env_kwargs=kwargs)
    if path is None:
        return curriculum, sb3.PPO("MlpPolicy", env, n_steps=10, batch_size=30, n_epochs=1, device="cpu")
    return curriculum, load(sb3.PPO, path, env, device="cpu")


NEW_PROCESS = """
import sys
from tests.integrations import test_sb3 as t
for name in ("DummyVecEnv", "SubprocVecEnv"):
    curriculum, model = t.sure_model(getattr(t, name), f"{sys.argv[1]}/{name}.zip")
    held = [tuple(x[1:3]) for x in t.assignments_of(model.get_env()).in_flight]
    model.learn(600, reset_num_timesteps=False)
    print([held, curriculum.assigned])
    model.get_env().close()
"""


def test_saved_in_the_middle_and_loaded_in_a_new_process(tmp_path):
    """10 steps a rollout and 3 an episode: the save falls into the middle of episodes."""
    expected = []
    for cls in (DummyVecEnv, SubprocVecEnv):
        curriculum, model = sure_model(cls)
        model.learn(300)
        held = [tuple(t[1:3]) for t in assignments_of(model.get_env()).in_flight]
        assert len(held) == (N if cls is DummyVecEnv else 2 * N)
        save(model, tmp_path / cls.__name__)
        curriculum.assigned.clear()
        model.learn(600, reset_num_timesteps=False)
        model.get_env().close()
        expected.append([held, curriculum.assigned])
    assert [p.name for p in tmp_path.glob("Dummy*")] == ["DummyVecEnv.zip"]

    command = [sys.executable, "-c", NEW_PROCESS, str(tmp_path)]
    answer = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    for line, (held, assigned) in zip(answer.stdout.splitlines(), expected, strict=True):
        held_there, assigned_there = ast.literal_eval(line)
        assert held_there == held
        n = min(len(assigned_there), len(assigned))
        assert n > 150
        assert assigned_there[:n] == assigned[:n]


def test_the_callback_saves_between_updates(tmp_path):
    _, model = sure_model(DummyVecEnv)
    model.learn(120, callback=CurriculumCallback(save_path=tmp_path / "run", save_every=60))
    names = sorted(p.name for p in tmp_path.glob("*.zip"))
    assert names == ["run_120_steps.zip", "run_60_steps.zip"]
    curriculum, again = sure_model(DummyVecEnv, tmp_path / "run_60_steps")
    assert again.num_timesteps == 60
    assert curriculum.windows == 18 // 4, "20 steps in each of 3 environments are 18 episodes of 3 steps"
    with pytest.raises(ValueError, match="save_path"):
        CurriculumCallback(save_every=10)


def test_a_lone_assignments_may_be_shared():
    assignments = Assignments(Spy())
    env = with_curriculum([Probe], assignments, reset_to, "is_success")
    assert assignments_of(env) is assignments
    env.reset()
    assert env.reset_infos[0][LEVEL] == 4
