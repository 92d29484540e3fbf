"""A training that was stopped continues from its newest whole save, with its replay and its normalisation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.buffers import ReplayBuffer  # noqa: E402
from stable_baselines3.common.logger import HumanOutputFormat, Logger  # noqa: E402
from stable_baselines3.common.vec_env import VecNormalize  # noqa: E402

from scout_rl import Curriculum, rules  # noqa: E402
from scout_rl.files.refusal import Refusal  # noqa: E402
from scout_rl.integrations import sb3_saves  # noqa: E402
from scout_rl.integrations.sb3 import (  # noqa: E402
    CurriculumCallback,
    assignments_of,
    latest_save,
    load,
    load_latest,
    save,
    target_env,
    with_curriculum,
)
from scout_rl.records.tables import read_rows  # noqa: E402
from tests.integrations.probes import CONTEXTS, LEVELS, GoalProbe, Probe, Spy, reset_to  # noqa: E402

SMALL = {"buffer_size": 40, "learning_starts": 10, "batch_size": 4, "device": "cpu", "seed": 0}


class BoxProbe(Probe):
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)


class BoxGoalProbe(GoalProbe):
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)


def envs(kind=Probe, curriculum=None, n=2):
    return with_curriculum([kind] * n, curriculum or Spy(), reset_to, "is_success")


def ppo(env):
    return sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- which saves stay, and which is loaded -----------------------------------------------------------------------------


@pytest.mark.parametrize(("keep", "left"), [(1, [128]), (2, [96, 128]), (None, [0, 32, 64, 96, 128])])
def test_the_newest_saves_stay(tmp_path, keep, left):
    (tmp_path / "m_7_steps.zip.123.partial").write_bytes(b"of a killed process")
    (tmp_path / "m_old_steps.zip").write_bytes(b"someone else's")
    ppo(envs()).learn(128, callback=CurriculumCallback(save_path=tmp_path / "m", save_every=32, keep=keep))
    kept = {"m_old_steps.zip", *(f"m_{steps}_steps.zip" for steps in left)}
    assert set(names(tmp_path)) - {"m_7_steps.zip.123.partial"} == kept
    assert (tmp_path / "m_7_steps.zip.123.partial").exists() == (keep is None)
    assert load_latest(sb3.PPO, tmp_path / "m", envs(), device="cpu").num_timesteps == 128


def test_an_older_save_goes_only_when_the_newer_one_is_whole(tmp_path, monkeypatch):
    """The disk is full at the second save: the first stays, and training says what happened."""
    writes = iter([None, None, OSError(28, "No space left on device")])
    replace = os.replace

    def full(*paths):
        if error := next(writes):
            raise error
        replace(*paths)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        ppo(envs()).learn(128, callback=CurriculumCallback(save_path=tmp_path / "m", save_every=32, keep=1))
    assert names(tmp_path) == ["m_32_steps.zip"]
    assert load_latest(sb3.PPO, tmp_path / "m", envs(), device="cpu").num_timesteps == 32


def test_without_a_save_the_folder_and_the_names_are_in_the_refusal(tmp_path):
    assert latest_save(tmp_path / "nowhere" / "m") is None
    for path in (tmp_path / "m", tmp_path / "nowhere" / "m"):
        with pytest.raises(Refusal, match=rf"{path.parent} holds no complete save m_\*_steps.zip"):
            load_latest(sb3.PPO, path, envs())
    with pytest.raises(Refusal, match=r"there is no .*m\.zip"):
        load(sb3.PPO, tmp_path / "m", envs())
    with pytest.raises(ValueError, match="keep is 0"):
        CurriculumCallback(save_path=tmp_path / "m", keep=0)


def test_a_file_that_is_cut_off_anywhere_is_skipped(tmp_path):
    """Also right behind an entry that is a zip file itself, and so could pass for a whole one."""
    model = ppo(envs())
    model.learn(32)
    save(model, tmp_path / "m_32_steps")
    whole = (tmp_path / "m_32_steps.zip").read_bytes()
    ends = {i for i in range(len(whole)) if whole[i : i + 4] in (b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04")}
    assert len(ends) > 20
    for end in sorted(ends | {0, 1, len(whole) // 2, len(whole) - 1}):
        (tmp_path / "m_64_steps.zip").write_bytes(whole[:end])
        assert latest_save(tmp_path / "m") == tmp_path / "m_32_steps.zip", end
    model.save(tmp_path / "m_96_steps.zip")  # SB3's own: without a curriculum
    assert latest_save(tmp_path / "m") == tmp_path / "m_32_steps.zip"
    with pytest.raises(Refusal, match=r"m_96_steps.zip is cut off, or holds no curriculum"):
        load(sb3.PPO, tmp_path / "m_96_steps", envs())


@pytest.mark.parametrize("moment", ["model", "curriculum", "arrays", "rename"])
def test_a_save_that_breaks_off_leaves_the_one_before(tmp_path, monkeypatch, moment):
    """The same name is written twice; the second time it ends in the middle."""

    class Killed(BaseException):
        pass

    def killed(*arguments, **options):
        raise Killed

    model = sb3.SAC("MlpPolicy", envs(BoxProbe), **SMALL)
    model.learn(20)
    save(model, tmp_path / "m")
    model.learn(20, reset_num_timesteps=False)
    where = {
        "model": (model, "save"),
        "curriculum": (sb3_saves.snapshot, "packed"),
        "arrays": (np.lib.format, "write_array"),
        "rename": (os, "replace"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*where[moment], killed)
        with pytest.raises(Killed):
            save(model, tmp_path / "m")
    assert names(tmp_path) == ["m.zip"]
    again = load(sb3.SAC, tmp_path / "m", envs(BoxProbe), device="cpu")
    assert (again.num_timesteps, again.replay_buffer.pos) == (20, 10)


def test_another_training_s_saves_are_not_mixed_with_this_one_s(tmp_path):
    ppo(envs()).learn(64, callback=CurriculumCallback(save_path=tmp_path / "m"))
    fresh = ppo(envs())
    with pytest.raises(
        Refusal, match=r"m_64_steps.zip is the save of a training that is further than this one \(0 steps"
    ):
        fresh.learn(64, callback=CurriculumCallback(save_path=tmp_path / "m"))
    assert fresh.num_timesteps == 0
    assert names(tmp_path) == ["m_64_steps.zip"]


def test_a_curriculum_of_another_size_is_refused_by_its_size(tmp_path):
    model = ppo(envs())
    model.learn(32)
    save(model, tmp_path / "m")
    for contexts, levels in ((CONTEXTS, 3), (CONTEXTS + 1, LEVELS)):
        curriculum = Curriculum(rules.Scout(n_min=1, cooldown=1, tau_high=0.3), contexts, levels, window=4, seed=3)
        env = envs(curriculum=curriculum)
        before = curriculum.state_dict()["generator"]
        sizes = f"of {CONTEXTS} contexts x {LEVELS} levels, and this one has {contexts} contexts x {levels} levels"
        with pytest.raises(Refusal, match=sizes):
            load(sb3.PPO, tmp_path / "m", env)
        assert (curriculum.windows, curriculum.state_dict()["generator"]) == (0, before)
        assert assignments_of(env).in_flight == []


# -- replay and normalisation ------------------------------------------------------------------------------------------


def arrays_of(buffer):
    return {name: array.copy() for name, array in sb3_saves._arrays(buffer).items()}


@pytest.mark.parametrize("steps", [24, 110], ids=["partly filled", "wrapped around"])
@pytest.mark.parametrize("kind", [BoxProbe, BoxGoalProbe], ids=["array", "dict"])
def test_the_replay_continues_as_it_was(tmp_path, kind, steps):
    policy = "MlpPolicy" if kind is BoxProbe else "MultiInputPolicy"
    model = sb3.SAC(policy, envs(kind), **SMALL)
    model.learn(steps)
    buffer = model.replay_buffer
    save(model, tmp_path / "m")
    again = load(sb3.SAC, tmp_path / "m", envs(kind), device="cpu").replay_buffer
    assert (again.pos, again.full) == (buffer.pos, buffer.full) == ((12, False) if steps == 24 else (15, True))
    ours, theirs = arrays_of(again), arrays_of(buffer)
    assert {"actions", "rewards", "dones", "timeouts"} < ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert any(array.any() for array in theirs.values())
    draws = []
    for one in (buffer, again):
        np.random.seed(3)  # noqa: NPY002  # SB3 draws from NumPy's global generator
        draws.append(one.sample(16).actions)
    assert torch.equal(*draws)


def test_hindsight_replay_ends_the_episodes_under_way(tmp_path):
    """As the environments start anew, the last step of an episode under way is a time-out; all else is as it was."""
    model = sb3.SAC("MultiInputPolicy", envs(BoxGoalProbe), replay_buffer_class=sb3.HerReplayBuffer, **SMALL)
    model.learn(30)
    buffer = model.replay_buffer
    assert (buffer._current_ep_start != buffer.pos).any(), "some episode is under way"
    save(model, tmp_path / "m")
    again = load(sb3.SAC, tmp_path / "m", envs(BoxGoalProbe), device="cpu")
    with pytest.warns(UserWarning, match="truncated"):
        buffer.truncate_last_trajectory()
    ours, theirs = arrays_of(again.replay_buffer), arrays_of(buffer)
    assert {"ep_start", "ep_length", "observations/achieved_goal"} < ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert again.replay_buffer._current_ep_start.tolist() == [15, 15]
    updates = again._n_updates
    again.learn(20, reset_num_timesteps=False)
    assert again._n_updates > updates


def test_the_replay_can_be_left_out(tmp_path):
    model = sb3.SAC("MlpPolicy", envs(BoxProbe), **SMALL)
    model.learn(24, callback=CurriculumCallback(save_path=tmp_path / "m", replay=False))
    again = load_latest(sb3.SAC, tmp_path / "m", envs(BoxProbe), device="cpu")
    assert (again.num_timesteps, again.replay_buffer.size()) == (24, 0)


def test_a_replay_that_does_not_fit_is_refused_before_the_curriculum_changes(tmp_path):
    model = sb3.SAC("MlpPolicy", envs(BoxProbe), **SMALL)
    model.learn(24)
    save(model, tmp_path / "m")
    curriculum = Spy()
    with pytest.raises(Refusal, match=r"room for 20 steps of 2 environments, and this model's for 10 of 4"):
        load(sb3.SAC, tmp_path / "m", envs(BoxProbe, curriculum, n=4), device="cpu")
    assert curriculum.windows == 0


class Weighted(ReplayBuffer):
    """A buffer with something else to remember."""


@pytest.mark.parametrize(
    "options", [{"replay_buffer_class": Weighted}, {"replay_buffer_kwargs": {"copy_info_dict": True}}]
)
def test_a_replay_that_cannot_be_saved_is_refused_before_training(tmp_path, options):
    her = {"replay_buffer_class": sb3.HerReplayBuffer} if "replay_buffer_kwargs" in options else {}
    policy, kind = ("MultiInputPolicy", BoxGoalProbe) if her else ("MlpPolicy", BoxProbe)
    model = sb3.SAC(policy, envs(kind), **SMALL, **options, **her)
    with pytest.raises(Refusal, match=r"cannot be saved.*replay=False"):
        model.learn(24, callback=CurriculumCallback(save_path=tmp_path / "m"))
    assert model.num_timesteps == 0
    model.learn(24, callback=CurriculumCallback(save_path=tmp_path / "m", replay=False))


@pytest.mark.parametrize("kind", [Probe, GoalProbe], ids=["array", "dict"])
def test_the_normalisation_continues_as_it_was(tmp_path, kind):
    policy = "MlpPolicy" if kind is Probe else "MultiInputPolicy"
    env = VecNormalize(envs(kind))
    model = sb3.PPO(policy, env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    model.learn(64)
    save(model, tmp_path / "m")
    fresh = VecNormalize(envs(kind))
    load(sb3.PPO, tmp_path / "m", fresh, device="cpu")
    ours, theirs = (sb3_saves._normalisation_arrays(one) for one in (fresh, env))
    assert theirs["rewards/count"] > 60
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    with pytest.raises(Refusal, match="was trained in a VecNormalize, and these environments are in no VecNormalize"):
        load(sb3.PPO, tmp_path / "m", envs(kind), device="cpu")


# -- what to watch -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "evaluated", "key"),
    [
        (rules.Scout(), False, "scout/success_level0/*"),
        (rules.Scout(), True, "scout/eval_success/*"),
        (rules.Target(), True, ""),
    ],
)
def test_the_log_says_once_what_to_watch(tmp_path, rule, evaluated, key):
    """Not under a rule that starts from level 0 alone: there the rate is what it seems."""
    model = ppo(envs(curriculum=Curriculum(rule, CONTEXTS, LEVELS)))
    model.set_logger(Logger(None, [HumanOutputFormat(str(tmp_path / "log.txt"))]))
    eval_env = target_env(Probe, reset_to, range(CONTEXTS), "is_success") if evaluated else None
    model.learn(320, callback=CurriculumCallback(eval_env=eval_env), log_interval=1)
    text = (tmp_path / "log.txt").read_text()
    assert text.count("success_rate ") > 2, "SB3's own key, in its table"
    assert text.count("rollout/success_rate counts episodes from all levels") == bool(key)
    assert key in text


# -- the whole story ---------------------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys
import torch
from stable_baselines3 import PPO
from scout_rl import Curriculum, rules
from scout_rl.integrations import sb3
from tests.integrations.probes import CONTEXTS, LEVELS, Probe, reset_to

torch.set_num_threads(1)
killed_at = int(sys.argv[1])


class Killed(Probe):
    steps = 0

    def step(self, action):
        Killed.steps += 1
        if Killed.steps == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


curriculum = Curriculum(rules.Scout(), CONTEXTS, LEVELS, window=4, log_dir="runs/records")
env = sb3.with_curriculum([Killed] * 2, curriculum, reset_to, "is_success")
if sb3.latest_save("runs/model"):
    model = sb3.load_latest(PPO, "runs/model", env, device="cpu")
else:
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
print("from", model.num_timesteps)
callback = sb3.CurriculumCallback(save_path="runs/model", save_every=64)
model.learn(320 - model.num_timesteps, callback=callback, reset_num_timesteps=False)
print("to", model.num_timesteps, curriculum.windows)
"""


def test_the_same_script_continues_after_a_kill(tmp_path):
    """Killed in the middle of an episode, started again: the records and the saves are those of one training."""
    (tmp_path / "train.py").write_text(SCRIPT)
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *sys.path])

    def start(killed_at):
        return subprocess.run(
            [sys.executable, "train.py", str(killed_at)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    first, second = start(200), start(0)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert second.returncode == 0, second.stderr
    begun, ended = second.stdout.splitlines()
    assert begun == "from 192"
    assert ended.startswith("to 320 ")
    assert names(tmp_path / "runs") == ["model_256_steps.zip", "model_320_steps.zip", "records"]
    windows = read_rows(tmp_path / "runs/records/windows.jsonl")
    assert [row["window"] for row in windows] == list(range(int(ended.split()[-1])))
    assert len(windows) > 5
