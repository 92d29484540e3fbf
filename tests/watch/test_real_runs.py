"""Folders as our own training, the integrations and a campaign leave them."""

import shutil

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.watch.follow import FollowedRun
from scout_rl.watch.watcher import Watcher
from tests.watch.test_follow import assert_same

PARTS = ("about", "curves", "shares", "events", "stuck", "time_spent", "context")


def shown(root):
    """The one run below a folder: its watcher, its id, and its row."""
    watcher = Watcher([root])
    watcher.look(spare=60.0)
    ((key, row),) = watcher.rows.items()
    assert row.value["trouble"] == ""
    arguments = {"about": (), "events": (50, 0, None), "stuck": (50,), "context": (0, 64)}
    for part in PARTS:
        assert getattr(watcher, part)(key, *arguments.get(part, (64,)))
    return watcher, key, row.value


def test_a_run_of_scout_train(tiny_run, tmp_path):
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    read = FollowedRun(folder)
    read.advance()
    assert_same(read, folder)
    watcher, key, row = shown(tmp_path)
    assert (row["kind"], row["state"], row["windows"]) == ("folder", "finished", row["budget"])
    assert row["seconds_per_window"] > 0
    assert watcher.time_spent(key, 64)["steps_per_second"] > 0
    assert watcher.heat(key, 64, 0)["groups"]
    assert {part["name"] for part in watcher.time_spent(key, 64)["parts"]} == {
        *("windows", "evaluations", "checkpoints", "start and pauses")
    }


def test_a_training_with_the_gymnasium_wrapper(tmp_path):
    gymnasium = pytest.importorskip("gymnasium")
    from scout_rl.integrations.gymnasium import Assignments, CurriculumEnv

    class Line(gymnasium.Env):
        """Walk to the end; a level is a place on the way."""

        action_space = gymnasium.spaces.Discrete(2)
        observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place = (options or {}).get("place", 0)
            return np.array([self.place], np.float32), {}

        def step(self, action):
            self.place += 1
            done = self.place >= 4 or action == 0
            return np.array([self.place], np.float32), 0.0, done, False, {"is_success": self.place >= 4}

    def reset_to(env, context, level):
        return env.reset(options={"place": level})

    curriculum = Curriculum(rules.Scout(n_min=2), 3, 4, window=4, log_dir=tmp_path / "run", name="walk")
    env = CurriculumEnv(Line(), Assignments(curriculum), reset_to, success="is_success")
    env.action_space.seed(0)
    for _ in range(200):
        env.reset()
        done = False
        while not done:
            _, _, done, _, _ = env.step(env.action_space.sample())
    curriculum.evaluation([1, 0, 1])
    _, _, row = shown(tmp_path)
    assert (row["kind"], row["label"], row["budget"], row["windows"]) == ("log_dir", "walk", None, 50)
    assert row["worst"] == {"group": "all", "success": pytest.approx(2 / 3)}


def test_an_sb3_training(tmp_path):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO

    from scout_rl.integrations.sb3 import CurriculumCallback, with_curriculum

    gymnasium = pytest.importorskip("gymnasium")

    def reset_to(env, context, level):
        return env.reset(options={"low": -0.1 * (context + 1), "high": 0.1})

    def success(observation, reward, terminated, truncated, info):
        return not terminated

    curriculum = Curriculum(rules.Ability(), 2, 3, window=4, log_dir=tmp_path / "run")
    make = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=20)] * 2
    model = PPO("MlpPolicy", with_curriculum(make, curriculum, reset_to, success=success), n_steps=64, device="cpu")
    model.learn(512, callback=CurriculumCallback())
    _, _, row = shown(tmp_path)
    assert row["windows"] == curriculum.windows > 0


def test_failures_of_a_campaign_as_it_writes_them(tmp_path):
    pytest.importorskip("jax")
    from scout_rl.bench.campaign.file import PlannedRun
    from scout_rl.bench.campaign.state import CHANCES, add_failure
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.store import open_store
    from scout_rl.watch import find

    store = open_store(str(tmp_path))
    for seed, times in ((40, CHANCES), (41, 1)):
        config = RunConfig(setting="doorkey-small", seed=seed)
        add_failure(PlannedRun(f"doorkey-small/scout/{seed}", config, ()), store, "out of memory", times)
    watcher = Watcher([tmp_path])
    watcher.look()
    (line,) = watcher.overview()["campaigns"]
    cells = watcher.campaign(line["id"])["cells"]
    assert [(cell["seed"], cell["state"], cell["times"]) for cell in cells] == [
        ("40", "failed", 3),
        ("41", "waiting", 1),
    ]
    assert find.CHANCES == CHANCES
