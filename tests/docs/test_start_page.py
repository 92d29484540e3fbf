"""The page "Add SCOUT to your training in ten minutes": its blocks run, in order, and print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from scout_rl import Curriculum, rules
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.curriculum.picture import picture
from scout_rl.ladders.ladder import Ladder

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def test_the_page_does_what_it_says(tmp_path):
    (tmp_path / "first.py").write_text("\n".join(blocks("python")))
    run = subprocess.run([sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    (expected,) = blocks("text")
    assert run.stdout == expected
    again = subprocess.run([sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "Refusal: log_dir runs/plain" in again.stderr, "as the page warns"
    assert "before you start the file again, delete `runs/plain` and `runs/scout`" in PAGE.read_text()
    assert picture(tmp_path / "runs" / "scout").stat().st_size > 10_000


def test_the_other_blocks_work(tmp_path):
    names = {"__name__": "page"}
    exec(compile("\n".join(blocks("python")), str(PAGE), "exec"), names)
    envs = names["vector_env"](curriculum := Curriculum(rules.Scout(), 4, 5), 2)
    envs.reset(seed=0)
    for _ in range(40):
        envs.step(np.zeros(2, int))
    envs.close()
    assert curriculum.windows >= 1

    def make():
        new = Curriculum(rules.Scout(), 4, 5)
        return names["with_curriculum"]([names["Ridge"]], new, names["reset_to"], "is_success")

    model = names["PPO"]("MlpPolicy", make(), n_steps=32, batch_size=32, n_epochs=1)
    model.learn(64)
    names["sb3"].save(model, tmp_path / "model")
    names["train_on"](tmp_path / "model", make(), 64)
    assert names["PPO"].load(tmp_path / "model").num_timesteps == 128


def test_the_ridge_trains_from_a_ladder_with_the_page_s_codec():
    names = {"__name__": "page"}
    exec(compile("\n".join(blocks("python")), str(PAGE), "exec"), names)
    (given,) = re.findall(r"`codec=(DeepcopyCodec\(.*?\)\)?)`", PAGE.read_text())
    codec = eval(given, {"DeepcopyCodec": DeepcopyCodec})
    ladder = Ladder.from_function(names["Ridge"](), names["reset_to"], 4, 5, codec=codec)
    curriculum = Curriculum(rules.Scout(), 4, 5)
    env = names["with_curriculum"]([names["Ridge"]] * 2, curriculum, ladder, success="is_success", codec=codec)
    model = names["PPO"]("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device="cpu").learn(512)
    assert curriculum.windows > 5
    target = names["target_env"](names["Ridge"], ladder, range(4), "is_success", codec=codec)
    assert list(names["evaluate"](model, target)) == [0, 1, 2, 3]


def test_links_and_names_of_the_page_exist():
    text = PAGE.read_text()
    root = PAGE.parents[1]
    for path in re.findall(r"`(examples/\w+\.py)`", text):
        assert (root / path).exists(), path
    for link in re.findall(r"\]\((\S+\.md)\)", text):
        assert (PAGE.parent / link).exists(), link
